"""Stores elsewhere: downloaded instead of collected, and uploaded once collected (`core.remote` says where).

    URL/<game>/<config hash>/       the files of the store, named as in a local data directory
    URL/<game>/<config hash>/manifest.json     uploaded last: a store that has one is whole, and never overwritten

A local copy that is known to be at the remote holds a note of it, and is opened without asking the remote.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manicap.atari.games import GAMES
from manicap.atari.integrity import described_files, verify_store
from manicap.atari.store import Store, StoreConfig, store_path
from manicap.core.errors import Failure, UserError
from manicap.core.files import exclusive_lock, publish_directory, require_space
from manicap.core.progress import Tracker
from manicap.core.remote import Advance, Remote, RemoteFailure, has_origin, say_once, write_origin
from manicap.core.sealed import read_sealed
from manicap.play.inspection import NewerFormat
from manicap.play.integrity import MANIFEST
from manicap.play.leavings import building_path, lock_path

KILOBYTE = 1000


@dataclass(frozen=True)
class RemoteStore:
    """What the manifest of a store at a remote says."""

    place: str
    """<game>/<config hash>."""
    store: Store
    """Only described: its files are not here."""

    @property
    def num_lives(self) -> int:
        return int(self.store.manifest["counts"]["episodes"])

    @property
    def num_bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.store.manifest["files"].values())


def place_of(path: Path) -> str:
    """`pong/1a2b3c4d5e6f`, the place of a store in any data directory."""
    return f"{path.parent.name}/{path.name}"


def fetch_store(remote: Remote, final: Path, quiet: bool = False) -> bool:
    """Download the store that belongs at `final`; False if the remote has none. Requires the lock of the store.

    Every byte is compared with the manifest before the store has its name.
    """
    place = place_of(final)
    try:
        content = remote.read(f"{place}/{MANIFEST}")
    except RemoteFailure as failure:
        raise RemoteFailure(f"{failure}; there is no copy of {place} in {final.parent.parent}") from failure
    if content is None:
        return False
    found = _described(remote, place, content)
    require_space(final.parent, found.num_bytes, f"the files of {place}")
    scratch = building_path(final)
    scratch.mkdir()
    try:
        (scratch / MANIFEST).write_bytes(content)
        try:
            with _progress("downloading", found, quiet) as advance:
                remote.download(place, found.store.files, scratch, advance)
        except RemoteFailure as failure:
            if isinstance(failure.__cause__, FileNotFoundError):  # with its manifest, all files were there
                raise _damaged(remote, place, f"a file is missing ({failure})") from failure
            raise
        if faults := verify_store(scratch):
            raise _damaged(remote, place, "; ".join(faults))
        write_origin(scratch, f"{remote.url}/{place}")
        publish_directory(scratch, final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return True


def check_writable(remote: Remote, cache: Path) -> None:
    """Tell before the play that its store cannot be uploaded; raise if the remote cannot be reached."""
    try:
        remote.require_writable()
    except RemoteFailure as failure:
        if not failure.is_refusal:
            raise
        say_once(f"{failure}; what is collected stays in {cache}")


def is_uploaded(store: Store, remote: Remote) -> bool:
    """Whether the store is known to be at the remote."""
    return has_origin(store.path, f"{remote.url}/{place_of(store.path)}")


def keep_uploaded(store: Store, remote: Remote, quiet: bool = False) -> None:
    """Upload a store of the cache if necessary. If that fails, a sentence says so: the copy here is whole."""
    if is_uploaded(store, remote):
        return
    try:
        with exclusive_lock(lock_path(store.path), on_wait=lambda: None):
            if not is_uploaded(store, remote):
                upload_store(store, remote, quiet)
                write_origin(store.path, f"{remote.url}/{place_of(store.path)}")
    except (UserError, Failure, OSError) as error:
        say_once(f"{error}; the copy in {store.path} is used")


def upload_store(store: Store, remote: Remote, quiet: bool = False) -> bool:
    """Upload a store, the manifest last; False if the remote has it already. Another store there is not replaced."""
    place = _place(store.config)
    own = RemoteStore(place, store)
    if _is_there(own, remote):
        return False
    if faults := verify_store(store.path):
        raise UserError(f"{store.path} is not a sound store: {'; '.join(faults)}; it is not uploaded")
    with _progress("uploading", own, quiet) as advance:
        remote.upload(place, store.files, store.path, advance)
    sizes = remote.sizes(place)
    for name in store.files:
        expected, found = store.manifest["files"][name]["bytes"], sizes.get(f"{place}/{name}")
        if found != expected:
            raise RemoteFailure(
                f"cannot upload to {remote.url}/{place}: {name} has {found} bytes there instead of {expected};"
                " it was cut short, or another machine is uploading a store of other bytes"
            )
    if not _is_there(own, remote):
        remote.upload(place, (MANIFEST,), store.path)
    return True


def list_remote(remote: Remote) -> tuple[list[RemoteStore], list[UserError]]:
    """The whole stores at the remote, and what is wrong with others that have a manifest."""
    games = [game for game in remote.folders() if game in GAMES]
    names = [name for game in games for name in remote.sizes(game) if name.count("/") == 2]
    manifests = sorted(name for name in names if name.endswith(f"/{MANIFEST}"))
    stores, faults = list[RemoteStore](), list[UserError]()
    for name, content in remote.read_each(manifests).items():
        try:
            stores.append(_described(remote, name.removesuffix(f"/{MANIFEST}"), content))
        except UserError as error:
            faults.append(error)
    return stores, faults


def _is_there(own: RemoteStore, remote: Remote) -> bool:
    """Whether the remote has this store. A store of the same config but other bytes is an error."""
    content = remote.read(f"{own.place}/{MANIFEST}")
    if content is None:
        return False
    theirs = _described(remote, own.place, content).store.fingerprint
    if theirs != own.store.fingerprint:
        raise UserError(
            f"{remote.url}/{own.place} holds other bytes (fingerprint {theirs}) than {own.store.path}"
            f" (fingerprint {own.store.fingerprint}), which is not uploaded; to use the remote's, remove this one"
        )
    return True


def _described(remote: Remote, place: str, content: bytes) -> RemoteStore:
    """The store that a manifest describes, or a `UserError` that names it."""
    try:
        manifest = _unsealed(content)
        described_files(manifest, f"{remote.url}/{place}")
        found = RemoteStore(place, Store(Path(place), manifest))
        fault = "" if place == _place(found.store.config) else f"{MANIFEST} is that of another store"
    except NewerFormat:
        raise
    except (KeyError, TypeError, ValueError, UserError):  # all of these mean damage: a sealed manifest has these keys
        fault = f"{MANIFEST} is damaged"
    if fault:
        raise _damaged(remote, place, fault)
    return found


def _unsealed(content: bytes) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / MANIFEST
        path.write_bytes(content)
        return read_sealed(path, "manifest", remedy="")


def _place(config: StoreConfig) -> str:
    return place_of(store_path(config, Path()))


def _damaged(remote: Remote, place: str, faults: str) -> UserError:
    return UserError(
        f"{remote.url}/{place} is not a sound store: {faults}; nothing of it was kept; remove it there, and the next"
        " collection uploads it again"
    )


@contextmanager
def _progress(what: str, found: RemoteStore, quiet: bool) -> Iterator[Advance]:
    """Bytes shown as kilobytes. Not every backend counts: at the end all are done."""
    total, done = found.num_bytes // KILOBYTE, 0
    with Tracker(f"{what} {found.place}", total, "kB", quiet) as tracker:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            tracker.advance(min(done // KILOBYTE, total) - tracker.done)

        yield advance
        advance(found.num_bytes - done)
