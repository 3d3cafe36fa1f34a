"""Stores of gray frames: those of format 2 compressed, and those made by hand.

The result has the same frames, RAM and lives, but neither colour nor actions, which were never recorded.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.atari.collect import BYTES_PER_STEP
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.leavings import remove_leavings, remove_leavings_if_idle
from manicap.atari.ram import write_ram
from manicap.atari.screens import NUM_PAIRS, SHADES, Bytes
from manicap.atari.store import FILES, FORMAT, NO_ACTION, STEP, Store, StoreConfig, write_manifest
from manicap.core.errors import Failure, UserError, refused_by_system
from manicap.core.files import require_space, sync_directory, sync_file
from manicap.core.progress import Tracker
from manicap.play.codec import compressor
from manicap.play.integrity import MANIFEST
from manicap.play.leavings import building_path, store_lock


def write_gray_store(
    directory: Path,
    config: StoreConfig,
    chunks: Iterable[Bytes],
    ram: Bytes,
    episodes: NDArray[np.void],
    fingerprint: str | None = None,
) -> None:
    """Write a store's files from gray frames, given in chunks uint8 [n, 210, 160], under a fingerprint of their own."""
    _write_frames(directory, chunks)
    write_ram(directory / "ram.zst", ram)
    np.save(directory / "episodes.npy", episodes)
    write_manifest(directory, config, len(episodes), fingerprint)


def convert_store(path: Path, quiet: bool = False) -> Store:
    """Compress a store of format 2 in its place, once every frame of it was compared.

    The manifest says which files are the store's, and is replaced in one step: a kill leaves a whole store of the one
    format or the other, and files that the next collection or conversion removes.
    """
    store = open_store(path)  # before anything is created beside it
    place = path.resolve()
    if store.format == FORMAT:
        remove_leavings_if_idle(open_store(place))
        return store
    try:
        with store_lock(place, "at work on", quiet):
            remove_leavings(place)
            store = open_store(place)
            if store.format != FORMAT:
                _convert(store, quiet)
    except OSError as error:
        raise refused_by_system(f"cannot convert {path}", error) from error
    return open_store(path)


def _convert(store: Store, quiet: bool) -> None:
    if faults := verify_store(store.path):  # the new hashes would make damage look sound
        raise UserError(f"{store.path} is not a sound store: {'; '.join(faults)}; it stays as it is")
    require_space(store.path.parent, len(store) * BYTES_PER_STEP, f"{len(store):,} compressed frames")
    scratch = building_path(store.path)
    scratch.mkdir()
    try:
        with Tracker(f"converting {store.path}", 2 * len(store), "frames", quiet) as tracker:
            _write_frames(scratch, _advancing(store, tracker))
            write_ram(scratch / "ram.zst", np.asarray(store.ram))
            shutil.copyfile(store.path / "episodes.npy", scratch / "episodes.npy")
            write_manifest(scratch, store.config, len(store.episodes), store.fingerprint)
            _compare(store, open_store(scratch), tracker)
        _put_in_place(scratch, store.path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        remove_leavings(store.path)  # the old frames, or the new ones that are not the store's


def _write_frames(directory: Path, chunks: Iterable[Bytes]) -> None:
    """Write the files of a store that follow from its frames."""
    compress, sizes = compressor(), list[int]()
    with (directory / "frames.zst").open("wb") as file:
        for frame in (frame for chunk in chunks for frame in chunk):
            sizes.append(file.write(compress(np.ascontiguousarray(frame))))
    steps = np.zeros(len(sizes), STEP)
    steps["size"], steps["offset"] = sizes, np.cumsum([0, *sizes[:-1]])
    steps["table"], steps["action"] = SHADES, NO_ACTION
    np.save(directory / "steps.npy", steps)
    np.save(directory / "colours.npy", np.zeros((0, NUM_PAIRS, 2), np.uint8))


def _advancing(store: Store, tracker: Tracker) -> Iterator[Bytes]:
    for chunk in store.frame_chunks(np.arange(len(store))):
        yield chunk
        tracker.advance(len(chunk))


def _compare(old: Store, new: Store, tracker: Tracker) -> None:
    rows = np.arange(len(old))
    if not np.array_equal(old.ram, new.ram):
        raise Failure(f"{old.path}: the RAM did not come back from compression; the store stays as it is")
    for before, after in zip(old.frame_chunks(rows), new.frame_chunks(rows), strict=True):
        if not np.array_equal(before, after):
            raise Failure(f"{old.path}: a frame did not come back from compression; the store stays as it is")
        tracker.advance(len(before))


def _put_in_place(scratch: Path, path: Path) -> None:
    """Add the new files to the old ones, then replace the manifest; lives are the same in both formats."""
    new = sorted({*FILES[FORMAT]} - {*FILES[2]})
    for name in (*new, MANIFEST):
        sync_file(scratch / name)
    for name in new:
        os.rename(scratch / name, path / name)
    sync_directory(path)
    os.replace(scratch / MANIFEST, path / MANIFEST)
    sync_directory(path)
