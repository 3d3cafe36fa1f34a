"""Names beside a store: the lock of those who write it, and the hidden directory in which it is built."""

import os
from pathlib import Path


def lock_path(path: Path) -> Path:
    """The lock of those who write the store at `path`."""
    return path.parent / f".{path.name}.lock"


def building_path(path: Path) -> Path:
    """Where this process builds the store that will be at `path`."""
    return path.parent / f".{path.name}.building-{os.getpid()}"
