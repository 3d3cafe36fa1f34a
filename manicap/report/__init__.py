"""Pages and tables for readers, built from plain values. No torch here."""
