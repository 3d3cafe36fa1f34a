"""Command of the first stage for environments: record."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro

from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.printing import in_columns
from manicap.core.ranges import Range
from manicap.environments.config import RecordConfig
from manicap.environments.importing import record_from
from manicap.environments.recording import record_store
from manicap.environments.store import EnvironmentStore

OF_FILES = ("env", "purpose", "label_kinds", "label_categories", "colour", "frame_size")
"""What can be chosen of frames recorded elsewhere."""


@dataclass(frozen=True)
class RecordFlags(RecordConfig):
    source: Annotated[str, tyro.conf.Suppress] = ""


Workers = Annotated[int, Range(0, 1024)]
File = Annotated[Path | None, tyro.conf.arg(name="from", metavar="FILE")]


def record(config: RecordFlags, from_: File = None, data_dir: Path = DATA_DIR, workers: Workers | None = None) -> None:
    """Record any gymnasium environment, or frames recorded elsewhere, as a store.

    Plays 8 lanes (by default) in parallel processes and stores what is seen before every action, the action, its
    reward, and the state variables that the environment or a function of yours gives. The same command produces
    bit-identical data if the environment is seeded by reset(seed=...); a store that already exists is opened. Rerun an
    interrupted recording to resume it.

    Example: manicap record --env MiniGrid-DoorKey-8x8-v0 --steps 20000 --labels my_package.states:agent

    Example: manicap record --env my-robot --from play.npz --label-kinds x:place y:place

    Args:
        config: What to record.
        from_: Import frames recorded elsewhere, under the name given by --env: an .npz or .hdf5 file with frames,
            episode and label_NAME, or a folder with frames/*.png and labels.csv.
        data_dir: Where stores are kept.
        workers: Number of parallel processes; all cores if omitted; 0 plays in this process, for a debugger.
    """
    given = {field.name: getattr(config, field.name) for field in fields(RecordConfig)}
    if from_ is None:
        store = record_store(RecordConfig(**given), data_dir, workers)
    else:
        _refuse_flags_of_play(given)
        chosen = {name: given[name] for name in OF_FILES if name != "env"}
        store = record_from(from_, given["env"], data_dir=data_dir, **chosen)
    print(environment_lines([store]))
    print(f"state variables: {', '.join(f'{each.name} ({each.kind})' for each in store.variables) or 'none'}")


def _refuse_flags_of_play(given: dict[str, object]) -> None:
    defaults = {field.name: field.default for field in fields(RecordConfig)}
    changed = [name for name in given if name not in OF_FILES and given[name] != defaults[name]]
    if changed:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in changed)
        raise UserError(f"frames from a file are not played: leave out {flags}")


def environment_lines(stores: list[EnvironmentStore]) -> str:
    """One line per store, with its full path."""
    head = ("store", "environment", "frames", "size", "episodes", "MB", "labels", "purpose", "seed", "policy")
    rows = []
    for store in stores:
        config, num_bytes = store.config, sum(entry["bytes"] for entry in store.manifest["files"].values())
        size = f"{store.frame_shape[0]} x {store.frame_shape[1]}{'' if store.has_colour else ' gray'}"
        counts = (f"{len(store):,}", size, f"{len(store.episodes):,}", f"{num_bytes / 1e6:,.1f}")
        of_play = (str(len(store.variables)), config.purpose, str(config.seed), config.policy)
        rows.append((str(store.path), config.env, *counts, *of_play))
    return in_columns(head, rows, numbers=("frames", "episodes", "MB", "labels", "seed"))
