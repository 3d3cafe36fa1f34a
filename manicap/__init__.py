"""manicap: learn state representations without labels, and measure them honestly."""

__version__ = "0.1.0"
