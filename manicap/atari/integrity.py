"""Opens and verifies stores of games."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.screens import NUM_PAIRS
from manicap.atari.store import EPISODE, FILES, FORMAT, STEP, Store
from manicap.core.errors import UserError
from manicap.play.inspection import Rules, check_entries, follow_one_another, require_format, shape_faults
from manicap.play.integrity import MANIFEST, SLICE_ROWS


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
    return _RULES.open(path)


def verify_store(path: Path) -> list[str]:
    """Hash every file again; return the faults found, each naming its file (empty if the store is sound)."""
    return _RULES.verify(path)


def described_files(manifest: Mapping[str, Any], place: Path | str) -> tuple[str, ...]:
    """The files of the store that a manifest describes, whose entries are all there; KeyError, ... if not."""
    require_format(manifest, place, FORMAT)
    files = FILES[manifest["format"]]
    check_entries(manifest, files)
    return files


def _read(path: Path, manifest: dict[str, Any]) -> Store:
    described_files(manifest, path)
    return Store(path, manifest)


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
    if faults := shape_faults(store, shapes):
        return faults
    if len(store) != steps or not follow_one_another(store.episodes["start"], store.episodes["length"], steps):
        faults.append(f"the lives in episodes.npy do not add up to {steps} frames, one after the other")
    if store.format == FORMAT:
        if len(store.manifest["files"]["ram.zst"]["slices"]) != -(-steps // SLICE_ROWS):
            faults.append(f"ram.zst does not hold {steps} rows")
        size = (store.path / "frames.zst").stat().st_size
        if not follow_one_another(store.index["offset"], store.index["size"], size):
            faults.append("the rows in steps.npy do not add up to frames.zst, one after the other")
    return faults


def _sliced_rows(store: Store) -> int | None:
    return len(store) if store.format == FORMAT else None


_RULES = Rules("game", _read, _array_faults, "collect it again", _sliced_rows)
