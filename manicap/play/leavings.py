"""Names beside a store: the lock of those who write it, and the hidden directory in which it is built."""

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from manicap.core.files import exclusive_lock


def lock_path(path: Path) -> Path:
    """The lock of those who write the store at `path`."""
    return path.parent / f".{path.name}.lock"


def store_lock(path: Path, work: str, quiet: bool) -> AbstractContextManager[None]:
    """The lock, held; if another process is at the `work` of it, says so and waits."""

    def say_waiting() -> None:
        if not quiet:
            print(f"another process is {work} {path}: waiting for it", file=sys.stderr)

    return exclusive_lock(lock_path(path), on_wait=say_waiting)


def building_path(path: Path) -> Path:
    """Where this process builds the store that will be at `path`."""
    return path.parent / f".{path.name}.building-{os.getpid()}"
