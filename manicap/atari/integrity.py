"""Checks that a store is still as collected: it is opened if so, otherwise each fault is reported with its file.

The sealed manifest holds the size and sha256 of every array. Sizes and shapes are compared at every open. Contents are
hashed at the first open and whenever a file has been touched since; `manicap data verify` always hashes.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.screens import NUM_PAIRS
from manicap.atari.store import EPISODE, FILES, FORMAT, STEP, Store
from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed
from manicap.play.integrity import MANIFEST, SLICE_ROWS, changed_files, content_faults, size_fault


def open_store(path: Path | str) -> Store:
    """Open a store, or raise `UserError` naming the file that is missing, truncated or changed.

        store = manicap.open_store("data/pong/1a2b3c4d5e6f")
        store.frames[0], store.ram[0], store.config.steps

    Args:
        path: Directory of the store, as `collect` returns it in `store.path`.
    """
    path = Path(path)
    if not any((path / name).exists() for name in (MANIFEST, *chain.from_iterable(FILES.values()))):
        raise UserError(f"there is no store at {path}; 'manicap data list' shows those that there are")
    store, faults = _inspect(path, always_hash=False)
    if faults or store is None:
        raise UserError(
            f"{path} is not a sound store: {'; '.join(faults)}; remove it with 'manicap data remove {path}'"
            " and collect it again"
        )
    return store


def verify_store(path: Path) -> list[str]:
    """Hash every file again; return the faults found, each naming its file (empty if the store is sound)."""
    try:
        return _inspect(path, always_hash=True)[1]
    except NewerFormat as error:
        return [str(error)]


class NewerFormat(UserError):
    """No damage: another version wrote it."""


def described_files(manifest: Mapping[str, Any], place: Path | str) -> tuple[str, ...]:
    """The files of the store that a manifest describes, whose entries are all there; KeyError, ... if not."""
    found = manifest["format"]
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat(f"{place} has format {found}, and this manicap reads up to {FORMAT}: upgrade manicap")
    files = FILES[found]
    for name in files:
        entry = manifest["files"][name]
        _ = int(entry["bytes"]), [(int(start), int(stop), str(digest)) for start, stop, digest in entry["slices"]]
    _ = [int(manifest["counts"][name]) for name in ("frames", "episodes")]
    return files


def _inspect(path: Path, always_hash: bool) -> tuple[Store | None, list[str]]:
    if not path.is_dir():
        return None, [f"there is no directory {path}"]
    try:
        manifest = read_sealed(path / MANIFEST, "manifest", remedy="collect the store again")
        expected = {name: manifest["files"][name] for name in described_files(manifest, path)}
        store = Store(path, manifest)
    except NewerFormat:
        raise
    except (KeyError, TypeError, ValueError, UserError):  # all of these mean damage: a sealed manifest has these keys
        return None, [f"{MANIFEST} is {'damaged' if (path / MANIFEST).exists() else 'missing'}"]

    faults = [fault for name, entry in expected.items() if (fault := size_fault(path / name, entry["bytes"]))]
    if faults:
        return None, faults
    num_rows = len(store) if store.format == FORMAT else None
    faults = content_faults(path, store.files, always_hash, lambda: changed_files(path, expected, num_rows))
    return store, faults or _array_faults(store)


def _array_faults(store: Store) -> list[str]:
    """Arrays whose type or shape does not match the config, rows without bytes, and lives that are not contiguous."""
    steps, num_episodes = store.config.steps, int(store.manifest["counts"]["episodes"])
    shapes: dict[str, tuple[np.dtype[Any], tuple[int | None, ...]]] = {
        "frames.npy": (np.dtype(np.uint8), (steps, *FRAME_SHAPE)),
        "steps.npy": (STEP, (steps,)),
        "ram.npy": (np.dtype(np.uint8), (steps, RAM_SIZE)),
        "episodes.npy": (EPISODE, (num_episodes,)),
        "colours.npy": (np.dtype(np.uint8), (None, NUM_PAIRS, 2)),
    }
    faults = []
    for name in (each for each in store.files if each in shapes):
        dtype, shape = shapes[name]
        try:
            array = np.load(store.path / name, mmap_mode="r")
        except NOT_AN_ARRAY as error:
            faults.append(f"{name} is not an array ({error})")
            continue
        same = len(array.shape) == len(shape) and all(n in (m, None) for n, m in zip(shape, array.shape, strict=True))
        if array.dtype != dtype or not same:
            faults.append(f"{name} holds {array.dtype} {array.shape}, expected {dtype} {shape}")
    if faults:
        return faults
    ends = np.cumsum(store.episodes["length"])
    if len(store) != steps or not np.array_equal(store.episodes["start"], np.r_[0, ends[:-1]]) or ends[-1] != steps:
        faults.append(f"the lives in episodes.npy do not add up to {steps} frames, one after the other")
    if store.format == FORMAT:
        ends, size = np.cumsum(store.index["size"]), (store.path / "frames.zst").stat().st_size
        if len(store.manifest["files"]["ram.zst"]["slices"]) != -(-steps // SLICE_ROWS):
            faults.append(f"ram.zst does not hold {steps} rows")
        if not np.array_equal(store.index["offset"], np.r_[0, ends[:-1]]) or ends[-1] != size:
            faults.append("the rows in steps.npy do not add up to frames.zst, one after the other")
    return faults
