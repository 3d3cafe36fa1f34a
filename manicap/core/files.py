"""Files that are either whole or absent: atomic writes, hashes, locks.

A file is written under a scratch name, `.NAME.xxxxxxxx.scratch`, and locked while it is being written.
`remove_scratch` removes what a killed process left behind, and nothing that is still being written.
"""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from manicap.core.errors import Failure, UserError

SCRATCH_SUFFIX = ".scratch"


def atomic_write(path: Path, content: bytes) -> None:
    """Write `content` so that after a crash, and to any reader, the file is either the old one or the new one."""
    with atomic_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that replaces `path`, complete and on disk, when the block ends without an error."""
    with _replacing(path) as (file, _):
        yield file


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """The same for writers that open a file themselves: they write to the path that this yields."""
    with _replacing(path) as (_, scratch):
        yield scratch


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    _refuse_device(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Writing a file again also removes what a killed writer of it left behind.
    _remove_unlocked(path.parent.glob(f".{glob.escape(path.name)}.*{SCRATCH_SUFFIX}"))
    handle, scratch = _open_scratch(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, Path(scratch)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())  # mkstemp creates 0600: unreadable to others on a shared disk
            os.replace(scratch, path)  # before the file is closed, which releases its lock
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
    sync_directory(path.parent)


def _open_scratch(path: Path) -> tuple[int, str]:
    """A new locked file beside `path`."""
    while True:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=SCRATCH_SUFFIX)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, scratch
        os.close(handle)  # `remove_scratch` ran between the two calls


def remove_scratch(directory: Path) -> list[Path]:
    """Remove the scratch files that killed processes left below `directory`, and return their paths."""
    return _remove_unlocked(directory.rglob(f".*{SCRATCH_SUFFIX}"))


def _remove_unlocked(paths: Iterable[Path]) -> list[Path]:
    removed = []
    for path in sorted(paths):
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                removed.append(path)
        except (BlockingIOError, FileNotFoundError, PermissionError):  # being written, already gone, or another user's
            continue
    return removed


def sync_file(path: Path) -> None:
    """Wait until the file's content is on disk, whoever wrote it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _refuse_device(path: Path) -> None:
    """Renaming would replace a device or a FIFO by a file."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is {'a directory' if path.is_dir() else 'not a regular file'} and cannot be written")


def sync_directory(directory: Path) -> None:
    """Make a rename inside `directory` durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_space(directory: Path, num_bytes: int, what: str) -> None:
    """Raise a `Failure` before anything is written if `directory` has too little free space."""
    free = shutil.disk_usage(directory).free
    if num_bytes > free:
        raise Failure(f"{what} need {_gigabytes(num_bytes)}, but only {_gigabytes(free)} are free in {directory}")


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes // 10**9:,} GB" if num_bytes >= 10**11 else f"{num_bytes / 1e9:.3f} GB"


def publish_directory(scratch: Path, final: Path) -> None:
    """Rename a directory of files into place once all of it is on disk: after a power cut it is complete or absent."""
    for path in scratch.iterdir():
        sync_file(path)
    sync_directory(scratch)
    os.rename(scratch, final)
    sync_directory(final.parent)


def file_stamp(path: Path) -> dict[str, int]:
    """What changes when a file is written to: its size, its modification time, and its change time.

    Programs can reset the modification time, but not the change time (ctime).
    """
    status = path.stat()
    return {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}


def write_json(path: Path, value: Any) -> None:
    """Write `value` atomically as readable JSON with sorted keys: equal values give equal bytes."""
    atomic_write(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_slice(path: Path, start: int, stop: int) -> str:
    """Hex sha256 of the bytes start .. stop-1 of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while start < stop and (piece := file.read(min(1 << 20, stop - start))):
            digest.update(piece)
            start += len(piece)
    return digest.hexdigest()


@contextlib.contextmanager
def exclusive_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an advisory lock on `path`, calling `on_wait` first if another process holds it.

    The kernel releases the lock when its holder dies, so a killed process blocks nobody.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
