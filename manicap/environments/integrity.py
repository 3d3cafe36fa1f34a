"""Opens and verifies stores of environments."""

from pathlib import Path
from typing import Any

import numpy as np

from manicap.core.errors import UserError
from manicap.environments.store import EPISODE, FORMAT, STEP, EnvironmentStore
from manicap.play.inspection import Rules, follow_one_another, require_format, shape_faults
from manicap.play.integrity import MANIFEST


def open_environment_store(path: Path | str) -> EnvironmentStore:
    """Open a store, or raise `UserError` naming the file that is missing, truncated or changed.

        store = open_environment_store("data/environments/CartPole-v1/1a2b3c4d5e6f")
        store.frames[0], store.actions[0], store.config.steps

    Args:
        path: Directory of the store, as `record` returns it in `store.path`.
    """
    path = Path(path)
    if not (path / MANIFEST).exists() and not (path / "frames.zst").exists():
        raise UserError(
            f"there is no store of an environment at {path}; 'manicap data list' shows those that there are"
        )
    return _RULES.open(path)


def verify_environment_store(path: Path) -> list[str]:
    """Hash every file again; return the faults found, each naming its file (empty if the store is sound)."""
    return _RULES.verify(path)


def _read(path: Path, manifest: dict[str, Any]) -> EnvironmentStore:
    require_format(manifest, path, FORMAT)
    return EnvironmentStore(path, manifest)


def _array_faults(store: EnvironmentStore) -> list[str]:
    """Arrays whose type or shape does not match the layout, rows without bytes, and episodes not contiguous."""
    layout, num_rows = store.layout, len(store)
    shapes: dict[str, tuple[np.dtype[Any], tuple[int | None, ...]]] = {
        "steps.npy": (STEP, (num_rows,)),
        "actions.npy": (np.dtype(layout.action_type), (num_rows, *layout.action_shape)),
        "labels.npy": (layout.label_dtype, (num_rows,)),
        "episodes.npy": (EPISODE, (int(store.manifest["counts"]["episodes"]),)),
    }
    if faults := shape_faults(store, shapes):
        return faults
    if not follow_one_another(store.episodes["start"], store.episodes["length"], num_rows):
        faults.append(f"the episodes in episodes.npy do not add up to {num_rows} frames, one after the other")
    size = (store.path / "frames.zst").stat().st_size
    if not follow_one_another(store.steps["offset"], store.steps["size"], size):
        faults.append("the rows in steps.npy do not add up to frames.zst, one after the other")
    return faults


_RULES = Rules("env", _read, _array_faults, "record it again")
