"""A dataset's published archive: found or downloaded, verified by its checksum, and unpacked file by file."""

import contextlib
import gzip
import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from manicap.core.errors import Failure, UserError
from manicap.core.files import atomic_file, exclusive_lock, remove_scratch
from manicap.core.progress import Tracker


@dataclass(frozen=True)
class Archive:
    url: str
    md5: str
    """As the authors publish it."""
    size: str
    """For messages: `162 MB`."""
    folder: str
    """The folder in the archive that holds the files."""

    @property
    def file_name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


def provide_files(directory: Path, archive: Archive, names: Collection[str], download: bool, quiet: bool) -> None:
    """Ensure that `directory/folder` holds the files `names`: unpack the archive, after downloading it if necessary."""
    if not _missing(directory, archive, names):
        return
    path = directory / archive.file_name
    if not path.exists() and not download:
        raise UserError(_how_to_get(directory, archive, names))
    tracker = Tracker("", 0, quiet=quiet)
    with exclusive_lock(directory / ".lock", lambda: tracker.say(f"waiting for another process in {directory}")):
        missing = _missing(directory, archive, names)
        if not missing:
            return
        remove_scratch(directory / archive.folder)
        if path.exists():
            _check_md5(path, archive)
        else:
            _download(directory, archive, names, quiet)
        _unpack(path, directory, archive, missing, quiet)


def verify_archive(directory: Path, archive: Archive) -> list[str]:
    """What is wrong with the archive, if it was kept and is not the published one."""
    try:
        if (directory / archive.file_name).is_file():
            _check_md5(directory / archive.file_name, archive)
    except UserError as error:
        return [str(error)]
    return []


def _missing(directory: Path, archive: Archive, names: Collection[str]) -> list[str]:
    return [name for name in names if not (directory / archive.folder / name).is_file()]


def _how_to_get(directory: Path, archive: Archive, names: Collection[str]) -> str:
    missing = _missing(directory, archive, names)
    return (
        f"{directory / archive.folder} lacks {', '.join(missing)}; put the archive {archive.file_name} ({archive.size},"
        f" from {archive.url}, md5 {archive.md5}) or its folder {archive.folder} into {directory}"
    )


def _check_md5(path: Path, archive: Archive) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != archive.md5:
        raise UserError(
            f"{path} ({path.stat().st_size} bytes) has md5 {found}, but the published archive ({archive.size}) has"
            f" {archive.md5}: it is truncated or a different file; remove it and try again, or replace it"
        )


def _download(directory: Path, archive: Archive, names: Collection[str], quiet: bool) -> None:
    try:
        import pooch
        import requests  # pooch downloads with it
    except ImportError:
        raise UserError(
            f"downloading requires pooch: install manicap[images]. Otherwise: {_how_to_get(directory, archive, names)}"
        ) from None
    pooch.get_logger().setLevel("WARNING")  # the progress bar says the same
    bar = _Bar(f"downloading {archive.file_name}", quiet)
    try:
        with contextlib.closing(bar):
            pooch.retrieve(
                archive.url,
                known_hash=f"md5:{archive.md5}",
                fname=archive.file_name,
                path=directory,
                downloader=pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 20),
            )
    except (requests.RequestException, ValueError) as error:  # no network, no such page; ValueError: another md5
        lost = isinstance(error, requests.ConnectionError | requests.Timeout)
        reason = f"no connection to {urlsplit(archive.url).hostname}" if lost else str(error).splitlines()[0]
        raise Failure(
            f"{archive.file_name} could not be downloaded ({reason}); {_how_to_get(directory, archive, names)}"
        ) from None


class _Bar:
    """Our progress bar behind the interface that pooch expects (that of tqdm)."""

    def __init__(self, title: str, quiet: bool) -> None:
        self.title, self.quiet = title, quiet
        self.total = 0  # bytes; pooch sets it once known
        self._tracker: Tracker | None = None

    def update(self, num_bytes: int) -> None:
        if self._tracker is None:
            self._tracker = Tracker(self.title, _megabytes(self.total), unit="MB", quiet=self.quiet).__enter__()
            self._bytes = 0
        self._bytes = min(self._bytes + num_bytes, self.total)  # pooch counts whole chunks
        self._tracker.advance(_megabytes(self._bytes) - self._tracker.done)

    def reset(self) -> None:
        """At the end pooch resets the bar and fills it; ours is already full."""

    def close(self) -> None:
        if self._tracker is not None:
            self._tracker.__exit__(None, None, None)
            self._tracker = None


def _megabytes(num_bytes: int) -> int:
    return -(-num_bytes // 1_000_000)


def _unpack(path: Path, directory: Path, archive: Archive, names: Collection[str], quiet: bool) -> None:
    wanted = {f"{archive.folder}/{name}": directory / archive.folder / name for name in names}
    with Tracker(f"unpacking {path.name}", len(wanted), unit="files", quiet=quiet) as tracker:
        try:
            with tarfile.open(path) as tar:
                for member in tar:
                    target = wanted.get(member.name.removeprefix("./"))
                    if target is None or not member.isfile():
                        continue
                    _copy_member(tar, member, target)
                    tracker.advance()
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"{path} cannot be unpacked ({error}); remove it and try again") from None
    missing = _missing(directory, archive, names)
    if missing:
        raise UserError(f"{path} does not contain {', '.join(missing)}; remove it and try again")


def _copy_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source: Any = tar.extractfile(member)
    with source, atomic_file(target) as file:
        shutil.copyfileobj(source, file, 1 << 20)
