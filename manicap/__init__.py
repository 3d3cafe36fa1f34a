"""manicap: learn state representations without labels, and measure them honestly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manicap.atari.collect import collect
    from manicap.atari.integrity import open_store
    from manicap.atari.store import StoreConfig
    from manicap.atari.wrapper import AtariARI
    from manicap.losses.capacity import CapacityRegularizer
    from manicap.train.encoder_files import load_encoder

__version__ = "0.1.0"

# Loaded on first use, so that `import manicap` is quick and collectors never load torch.
_LAZY = {
    "AtariARI": "manicap.atari.wrapper",
    "StoreConfig": "manicap.atari.store",
    "CapacityRegularizer": "manicap.losses.capacity",
    "collect": "manicap.atari.collect",
    "evaluate": "manicap.evaluate",
    "load_encoder": "manicap.train.encoder_files",
    "open_store": "manicap.atari.integrity",
}
__all__ = ["AtariARI", "CapacityRegularizer", "StoreConfig", "collect", "evaluate", "load_encoder", "open_store"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'manicap' has no attribute {name!r}")
