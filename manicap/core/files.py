"""Files that are either whole or absent: atomic writes, hashes, locks.

A file is written under a scratch name, `.NAME.xxxxxxxx.scratch`, and locked while it is: `remove_scratch` takes away
what a killed process has left, and nothing that somebody is still writing.
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
    """Write `content` so that a reader, or a crash, sees the old file or the new one and never a part."""
    with atomic_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into that takes the place of `path`, whole and on disk, when the block ends without an error."""
    _refuse_device(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whoever writes a file again clears what a killed writer of it has left, wherever it is.
    _remove_unlocked(path.parent.glob(f".{glob.escape(path.name)}.*{SCRATCH_SUFFIX}"))
    handle, scratch = _open_scratch(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())  # mkstemp makes 0600: unreadable for others on a shared disk
            os.replace(scratch, path)  # before the file is closed, which ends its lock
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
        os.close(handle)  # `remove_scratch` came between the two calls


def remove_scratch(directory: Path) -> list[Path]:
    """Remove the scratch files below `directory` that killed processes have left; which they were."""
    return _remove_unlocked(directory.rglob(f".*{SCRATCH_SUFFIX}"))


def _remove_unlocked(paths: Iterable[Path]) -> list[Path]:
    removed = []
    for path in sorted(paths):
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                removed.append(path)
        except (BlockingIOError, FileNotFoundError, PermissionError):  # being written, written by now, or another's
            continue
    return removed


def sync_file(path: Path) -> None:
    """Wait until the file's content is on disk, whoever wrote it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _refuse_device(path: Path) -> None:
    """The rename would put a file in the place of a device or a FIFO."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is {'a directory' if path.is_dir() else 'no regular file'} and cannot be written")


def sync_directory(directory: Path) -> None:
    """Make a rename inside `directory` durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_space(directory: Path, num_bytes: int, what: str) -> None:
    """Refuse what cannot fit into `directory` before a byte of it is written."""
    free = shutil.disk_usage(directory).free
    if num_bytes > free:
        raise Failure(f"{what} need {_gigabytes(num_bytes)}, and {_gigabytes(free)} are free in {directory}")


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes // 10**9:,} GB" if num_bytes >= 10**11 else f"{num_bytes / 1e9:.3f} GB"


def publish_directory(scratch: Path, final: Path) -> None:
    """Rename a directory of files into place once all of it is on disk: a power cut leaves it whole or absent."""
    for path in scratch.iterdir():
        sync_file(path)
    sync_directory(scratch)
    os.rename(scratch, final)
    sync_directory(final.parent)


def file_stamp(path: Path) -> dict[str, int]:
    """What changes when a file is written to: its size, its time stamp, and the time of its last change of any kind.

    Programs can set a time stamp back; nobody can set the last one (ctime).
    """
    status = path.stat()
    return {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}


def write_json(path: Path, value: Any) -> None:
    """Write `value` atomically as readable JSON with sorted keys: equal values, equal bytes."""
    atomic_write(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_slice(path: Path, start: int, stop: int) -> str:
    """Hex sha256 of the bytes start .. stop-1 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while start < stop and (piece := file.read(min(1 << 20, stop - start))):
            digest.update(piece)
            start += len(piece)
    return digest.hexdigest()


@contextlib.contextmanager
def exclusive_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an advisory lock on `path`, calling `on_wait` first if another process has it.

    The kernel drops the lock when its holder dies, so a killed process blocks nobody.
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
