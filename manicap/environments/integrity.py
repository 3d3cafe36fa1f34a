"""Checks that a store is still as recorded: it is opened if so, otherwise each fault is reported with its file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed
from manicap.environments.store import EPISODE, FORMAT, STEP, EnvironmentStore
from manicap.play.integrity import MANIFEST, changed_files, content_faults, size_fault


class NewerFormat(UserError):
    """No damage: another version wrote it."""


def open_environment_store(path: Path | str) -> EnvironmentStore:
    """Open a store, or raise `UserError` naming the file that is missing, truncated or changed.

        store = manicap.open_environment_store("data/environments/CartPole-v1/1a2b3c4d5e6f")
        store.frames[0], store.actions[0], store.config.steps

    Args:
        path: Directory of the store, as `record` returns it in `store.path`.
    """
    path = Path(path)
    if not (path / MANIFEST).exists() and not (path / "frames.zst").exists():
        raise UserError(
            f"there is no store of an environment at {path}; 'manicap data list' shows those that there are"
        )
    store, faults = _inspect(path, always_hash=False)
    if faults or store is None:
        raise UserError(
            f"{path} is not a sound store: {'; '.join(faults)}; remove it with 'manicap data remove"
            f" {path}' and record it again"
        )
    return store


def verify_environment_store(path: Path) -> list[str]:
    """Hash every file again; return the faults found, each naming its file (empty if the store is sound)."""
    try:
        return _inspect(path, always_hash=True)[1]
    except NewerFormat as error:
        return [str(error)]


def _inspect(path: Path, always_hash: bool) -> tuple[EnvironmentStore | None, list[str]]:
    if not path.is_dir():
        return None, [f"there is no directory {path}"]
    try:
        manifest = read_sealed(path / MANIFEST, "manifest", remedy="record the store again")
        _require_format(manifest, path)
        store = EnvironmentStore(path, manifest)
        expected = {name: manifest["files"][name] for name in store.files}
        faults = [fault for name in expected if (fault := size_fault(path / name, int(expected[name]["bytes"])))]
    except NewerFormat:
        raise
    except (KeyError, TypeError, ValueError, UserError):  # all of these mean damage: a sealed manifest has these keys
        return None, [f"{MANIFEST} is {'damaged' if (path / MANIFEST).exists() else 'missing'}"]
    if faults:
        return None, faults
    faults = content_faults(path, store.files, always_hash, lambda: changed_files(path, expected, len(store)))
    return store, faults or _array_faults(store)


def _require_format(manifest: Mapping[str, Any], path: Path) -> None:
    found = manifest["format"]
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat(f"{path} has format {found}, and this manicap reads up to {FORMAT}: upgrade manicap")


def _array_faults(store: EnvironmentStore) -> list[str]:
    """Arrays whose type or shape does not match the layout, rows without bytes, and episodes not contiguous."""
    layout, num_rows = store.layout, len(store)
    shapes: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
        "steps.npy": (STEP, (num_rows,)),
        "actions.npy": (np.dtype(layout.action_type), (num_rows, *layout.action_shape)),
        "labels.npy": (layout.label_dtype, (num_rows,)),
        "episodes.npy": (EPISODE, (int(store.manifest["counts"]["episodes"]),)),
    }
    faults = []
    for name in (each for each in store.files if each in shapes):
        dtype, shape = shapes[name]
        try:
            array = np.load(store.path / name, mmap_mode="r")
        except NOT_AN_ARRAY as error:
            faults.append(f"{name} is not an array ({error})")
            continue
        if array.dtype != dtype or array.shape != shape:
            faults.append(f"{name} holds {array.dtype} {array.shape}, expected {dtype} {shape}")
    if faults:
        return faults
    ends = np.cumsum(store.episodes["length"])
    if not np.array_equal(store.episodes["start"], np.r_[0, ends[:-1]]) or ends[-1] != num_rows:
        faults.append(f"the episodes in episodes.npy do not add up to {num_rows} frames, one after the other")
    ends, size = np.cumsum(store.steps["size"]), (store.path / "frames.zst").stat().st_size
    if not np.array_equal(store.steps["offset"], np.r_[0, ends[:-1]]) or ends[-1] != size:
        faults.append("the rows in steps.npy do not add up to frames.zst, one after the other")
    return faults
