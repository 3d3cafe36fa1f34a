"""What a killed collection or conversion leaves: a hidden directory beside the store, or files of another format in it.

Whoever works on a store holds its lock and begins by removing these; the kernel releases the lock of a killed process.
"""

import glob
import shutil
from itertools import chain
from pathlib import Path

from manicap.atari.integrity import open_store
from manicap.atari.store import FILES, Store
from manicap.core.files import exclusive_lock
from manicap.play.leavings import lock_path


def remove_leavings(path: Path) -> None:
    """Remove what a killed process left beside the store and, if there is a store, in it. Requires the lock."""
    found = _beside(path)
    if path.is_dir():
        found += _inside(open_store(path))
    for leaving in found:
        _remove(leaving)


def remove_leavings_if_idle(store: Store) -> None:
    """The same for a reader of the store: what a living process is building stays."""
    if _beside(store.path) or _inside(store):
        try:
            with exclusive_lock(lock_path(store.path), on_wait=_refuse_to_wait):
                remove_leavings(store.path)  # opens it anew: a conversion may have ended since
        except OSError:  # locked, or on a disk that cannot be written: they do no harm
            return


def _beside(path: Path) -> list[Path]:
    return list(path.parent.glob(f".{glob.escape(path.name)}.building-*"))


def _inside(store: Store) -> list[Path]:
    """A conversion adds its files before the manifest that names them, and removes the old ones after it."""
    others = {*chain.from_iterable(FILES.values())} - {*store.files}
    return [store.path / name for name in sorted(others) if (store.path / name).exists()]


def _remove(leaving: Path) -> None:
    if leaving.is_dir():
        shutil.rmtree(leaving, ignore_errors=True)
    else:
        leaving.unlink(missing_ok=True)


def _refuse_to_wait() -> None:
    raise BlockingIOError
