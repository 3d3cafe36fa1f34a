"""Data elsewhere: a directory named by a URL, and the local directory that holds copies of what is in it.

    data_dir = local_directory("s3://bucket/manicap")     # ~/.cache/manicap/s3-bucket-manicap-1a2b3c4d
    remote = remote_of(data_dir)                          # Remote("s3://bucket/manicap"); None for a local directory

Whoever reads data is given the local directory, an ordinary path: only those who create data ask for its remote. Any
file system of fsspec will do. It is imported when a URL is given, and its backend when something is transferred.
"""

import errno
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from manicap.core.errors import Failure, Interruption, UserError, refused_by_system, unknown_choice
from manicap.core.ranges import shown
from manicap.core.reading import reason
from manicap.core.sealed import read_sealed, write_sealed

ORIGIN = ".remote.json"
"""In a local directory: the URL that it is a copy of."""
NOTE = ".manicap"
"""At the remote: written before anything is collected for it, to learn whether it can be."""
URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+._-]+):(/+(?P<rest>.*))?")
"""Of the slashes of `s3://bucket` a `Path` keeps one, and of those of `s3://` none. One letter is not a scheme."""
CHAIN = re.compile(r"[A-Za-z0-9+._-]+::.*:/")
ON_DISK = ("file", "local")
"""Schemes without a host: what follows is an absolute path."""
LONGEST_SLUG, LONGEST_REASON = 60, 200
NOT_ALLOWED = (401, 403, 405, 501)
"""What web servers answer to those who may not write, or that cannot be written."""
PACKAGES = {"smbclient": "smbprotocol"}
"""Packages that are not named like their module."""

Advance = Callable[[int], None]
"""Called with the number of bytes transferred since the last call."""


class RemoteFailure(Failure):
    """The remote, or the way to it, failed."""

    def __init__(self, sentence: str, is_refusal: bool = False) -> None:
        super().__init__(sentence)
        self.is_refusal = is_refusal
        """It was reached and does not allow this."""


def remote_url(location: Path | str) -> str | None:
    """The URL that a data directory was named by; None for a path."""
    text = str(location)
    if CHAIN.match(text):
        raise UserError(f"{shown(text)} is a chain of file systems; a data directory is one URL or one path")
    match = URL.fullmatch(text)
    if match is None:
        return None
    scheme, rest = match["scheme"].lower(), (match["rest"] or "").strip("/")
    _require_known(scheme, text)
    if scheme in ON_DISK and text.count("/", 0, len(scheme) + 4) == 2:  # a `Path` has kept one slash
        raise UserError(f"{shown(text)} has no absolute path: write it as {scheme}:///folder, or give a plain path")
    if not rest:
        raise UserError(f"{shown(text)} names no directory; write it as {scheme}://bucket/folder")
    if re.match(r"[^/@]*:[^/]*@", rest):
        raise UserError(
            f"a password in a URL would be written to files and logs: set it in fsspec's configuration or as"
            f" FSSPEC_{scheme.upper()}_PASSWORD, and leave it out of the {scheme}:// URL"
        )
    return f"file:///{rest}" if scheme in ON_DISK else f"{scheme}://{rest}"


def _require_known(scheme: str, text: str) -> None:
    from fsspec.registry import known_implementations, registry

    known = {*known_implementations, *registry}
    if scheme not in known:
        advice = "for a local directory of this name give its absolute path"
        raise UserError(f"{unknown_choice('scheme', scheme, known)}; {advice}: {shown(text)}")


def local_directory(location: Path | str) -> Path:
    """A data directory as a path: itself, or the cache of a URL, which is created."""
    url = remote_url(location)
    if url is None:
        return Path(location)
    directory = cache_root() / f"{_slug(url)}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    try:
        if not has_origin(directory, url):
            write_origin(directory, url)
    except OSError as error:
        raise refused_by_system(f"cannot create {directory}, the cache of {url} (set MANICAP_CACHE)", error) from error
    return directory


def cache_root() -> Path:
    """Where caches of URLs are: MANICAP_CACHE, or `manicap` in the user's cache directory."""
    if named := os.environ.get("MANICAP_CACHE"):
        return Path(named).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manicap"
    except RuntimeError:
        raise UserError("there is no home directory for the cache; set MANICAP_CACHE") from None


def _slug(url: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", url.lower())[:LONGEST_SLUG].strip("-")


def write_origin(directory: Path, url: str) -> None:
    write_sealed(directory / ORIGIN, {"url": url})


def has_origin(directory: Path, url: str) -> bool:
    """Whether the directory is known to be a copy of this URL. A damaged note counts as none."""
    with suppress(UserError):
        return bool(read_sealed(directory / ORIGIN, "note", remedy="")["url"] == url)
    return False


def remote_of(directory: Path) -> "Remote | None":
    """What a local directory is the cache of; None for an ordinary one."""
    try:
        if not (directory / ORIGIN).is_file():
            return None
    except OSError as error:
        raise refused_by_system(f"cannot read {directory}", error) from error
    remedy = "remove this file, and give the URL as the data directory"
    return Remote(read_sealed(directory / ORIGIN, "note", remedy=remedy)["url"])


def portable(directory: Path) -> Path | str:
    """A data directory as another machine must be told of it: its URL, or its absolute path."""
    remote = remote_of(directory)
    return directory.absolute() if remote is None else remote.url


@cache
def say_once(sentence: str) -> None:
    """A sentence on stderr, once per process."""
    print(sentence, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Remote:
    """A directory at a URL. Names are relative to it. What goes wrong is a `RemoteFailure`."""

    url: str

    def read(self, name: str) -> bytes | None:
        """Content of a small file; None if there is none."""
        with self._reporting(f"read {self.url}/{name}"):
            fs, root = self._open()
            try:
                content: bytes = fs.cat_file(f"{root}/{name}")
            except FileNotFoundError:
                return None
            return content

    def read_each(self, names: Sequence[str]) -> dict[str, bytes]:
        """The contents of several small files, at once if the backend can."""
        if not names:
            return {}
        with self._reporting(f"read {self.url}"):
            fs, root = self._open()
            found = fs.cat([f"{root}/{name}" for name in names])
            return {path.removeprefix(f"{root}/"): content for path, content in found.items()}

    def folders(self) -> list[str]:
        """Names of the directories in it."""
        with self._reporting(f"list {self.url}"):
            fs, root = self._open()
            try:
                found = fs.ls(root, detail=True)
            except FileNotFoundError:
                return []
            names = (entry["name"].rstrip("/") for entry in found if entry["type"] == "directory")
            return sorted(name.rsplit("/", 1)[-1] for name in names)

    def sizes(self, folder: str) -> dict[str, int]:
        """Sizes of all files below a folder, by name."""
        with self._reporting(f"list {self.url}/{folder}"):
            fs, root = self._open()
            try:
                found = fs.find(f"{root}/{folder}", detail=True)
            except FileNotFoundError:
                return {}
            return {path.removeprefix(f"{root}/"): entry["size"] for path, entry in found.items()}

    def download(self, folder: str, names: Sequence[str], directory: Path, advance: Advance) -> None:
        """Copy files of a folder into a local directory."""
        with self._reporting(f"download {self.url}/{folder}"):
            fs, root = self._open()
            sources = [f"{root}/{folder}/{name}" for name in names]
            fs.get(sources, [str(directory / name) for name in names], callback=_counting(advance))

    def upload(self, folder: str, names: Sequence[str], directory: Path, advance: Advance = lambda count: None) -> None:
        """Copy files of a local directory into a folder. Each appears there whole or not at all."""
        with self._reporting(f"upload to {self.url}/{folder}"):
            fs, root = self._open()
            sources, targets = [str(directory / name) for name in names], [f"{root}/{folder}/{name}" for name in names]
            if fs.async_impl:  # an object store: an object appears when it is complete, and folders need not be made
                fs.put(sources, targets, callback=_counting(advance))
                return
            fs.makedirs(f"{root}/{folder}", exist_ok=True)
            scratch = [f"{root}/{folder}/.{name}.{_machine()}.scratch" for name in names]
            fs.put(sources, scratch, callback=_counting(advance))
            for source, target in zip(scratch, targets, strict=True):
                fs.mv(source, target)

    def require_writable(self) -> None:
        """Raise before anything is computed for it, if it cannot be written."""
        with self._reporting(f"write to {self.url}"):
            fs, root = self._open()
            if not fs.async_impl:
                fs.makedirs(root, exist_ok=True)
            fs.pipe_file(f"{root}/{NOTE}", b"Data of manicap.\n")

    def _open(self) -> tuple[Any, str]:
        """The file system and the path in it. Others write there too: what it remembers of listings is dropped."""
        from fsspec.core import url_to_fs

        fs, root = url_to_fs(self.url)
        fs.invalidate_cache()
        return fs, root.rstrip("/")

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Every backend raises errors of its own, few of which are an OSError."""
        try:
            yield
        except (UserError, Failure, Interruption, MemoryError):
            raise
        except ImportError as error:
            raise UserError(_missing_package(self.url, error)) from error
        except Exception as error:
            raise RemoteFailure(f"cannot {what}: {_why(error)}", _is_refusal(error)) from error


def _counting(advance: Advance) -> Any:
    """A callback of fsspec for several files, each of which counts its bytes."""
    from fsspec.callbacks import Callback

    class Counting(Callback):
        def branched(self, path_1: str, path_2: str, **kwargs: Any) -> Any:
            seen = 0

            def count(size: int | None, value: int, **_: Any) -> None:
                nonlocal seen
                advance(value - seen)
                seen = value

            return Callback(hooks={"count": count})

    return Counting()


def _machine() -> str:
    """Names the scratch files of this machine: its next attempt overwrites those of a killed one."""
    return hashlib.sha256(f"{os.uname().nodename} {cache_root()}".encode()).hexdigest()[:8]


def _missing_package(url: str, error: ImportError) -> str:
    scheme = url.split(":")[0]
    behind = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    if not isinstance(behind, ModuleNotFoundError) or not behind.name:
        return f"{scheme}:// cannot be used: {reason(behind)}"
    module = behind.name.split(".")[0]
    package = PACKAGES.get(module, module)
    return f"{scheme}:// needs the package {package}: pip install {package}"


def _is_refusal(error: Exception) -> bool:
    """Whether the remote answered, and does not allow it. Web servers answer with a number."""
    is_read_only = isinstance(error, OSError) and error.errno == errno.EROFS
    number = getattr(error, "status", None)
    return is_read_only or isinstance(error, PermissionError | NotImplementedError) or number in NOT_ALLOWED


def _why(error: Exception) -> str:
    """The reason in the words of the system or the backend, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    words = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
    if isinstance(error, NotImplementedError):
        return "it can only be read"
    if isinstance(error, PermissionError):
        return f"no permission ({words})"
    return f"not found ({words})" if isinstance(error, FileNotFoundError) else words
