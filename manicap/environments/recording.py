"""Recording: lanes of an environment played in parallel processes into one store.

    store = record("MiniGrid-DoorKey-8x8-v0", steps=20_000)
    store = record(make_my_world, labels=my_labels, steps=20_000)

The store is built in a hidden directory beside its final location and renamed when complete. Rerun an interrupted
recording to resume it: lanes that were complete are kept. A lock makes a second recorder of the same store wait and
then use the first one's copy.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import gymnasium

from manicap.core.config import check_config, config_hash, from_dict, to_dict
from manicap.core.errors import Failure, UserError, refused_by_system, unknown_choice
from manicap.core.files import publish_directory, require_space
from manicap.core.paths import DATA_DIR
from manicap.core.progress import Tracker
from manicap.core.registry import allow_plugins, allowed_plugins
from manicap.environments.building import is_finished, open_building, remove_parts
from manicap.environments.code import code_hashes, say_if_changed
from manicap.environments.config import LOCAL, RecordConfig, as_written, on_disk, store_path, with_file_hash
from manicap.environments.integrity import open_environment_store
from manicap.environments.joining import join_lanes
from manicap.environments.lane_worker import play_lane
from manicap.environments.layout import Survey, survey
from manicap.environments.making import NONE_OWN, OwnFunctions
from manicap.environments.naming import named
from manicap.environments.store import EnvironmentStore, store_files, write_manifest
from manicap.play.integrity import write_stamps
from manicap.play.leavings import store_lock
from manicap.play.workers import LaneDied, play_in_processes

NOT_SETTINGS = ("env", "labels", "policy", "source")


class RecordingError(Failure):
    """A lane could not be completed."""


def record(
    env: str | Callable[..., Any],
    *,
    labels: str | Callable[..., Any] | None = None,
    policy: str | Callable[..., Any] = "random",
    name: str | None = None,
    data_dir: Path | str = DATA_DIR,
    workers: int | None = None,
    quiet: bool = False,
    **settings: Any,
) -> EnvironmentStore:
    """Play any gymnasium environment and store its frames, actions, rewards and state variables.

        store = manicap.record("MiniGrid-DoorKey-8x8-v0", steps=20_000)
        store = manicap.record(make_my_world, labels=my_labels, steps=20_000, frame_size=(84, 84))
        store.frames[0], store.actions[0], store.labelling("recorded").labels(store.rows)

    If the store already exists, it is opened, with a warning if the code of a function has changed since; an
    interrupted recording is resumed.

    Args:
        env: Name of a registered environment, or a function that makes one (or its name, `package.module:maker`).
        labels: `info` (`info["labels"]`), `observation` (a vector), or a function of (env, observation, info) that
            returns a dict of bools, ints, floats and strings. If omitted, `info["labels"]` is used if
            it exists; the labels of MiniGrid and of gymnasium's classic control are known.
        policy: `random`, a function from an observation to an action, `actions:FILE.npy`, or `sb3:FILE.zip`.
        name: For functions that other processes cannot import (lambdas, functions of a script): the store is kept
            under this name, and recorded by this process alone. If it is interrupted, it begins again: whether the
            functions are the same is not known.
        data_dir: Where stores are kept.
        workers: Number of processes that play; one per core if omitted, 0 to play in this process, for a debugger.
        quiet: Show no progress.
        settings: Other fields of `RecordConfig`: steps, seed, purpose, lanes, label_names, label_kinds
            (`{"x": "place"}`), label_categories, frames, colour, frame_size, options (`{"size": 8}`), episode_limit.
    """
    known = [field.name for field in fields(RecordConfig) if field.name not in NOT_SETTINGS]
    for key in settings:
        if key not in known:
            raise unknown_choice("setting", key, known)
    if isinstance(env, gymnasium.Env):
        raise UserError("env must be a function that makes the environment, not an environment: every lane has its own")
    given = {"env": env, "labels": labels, "policy": policy}
    names, own = named(given, name)
    allow_plugins(each for each in names.values() if each is not None and not each.startswith(LOCAL))
    given_names = {key: value for key, value in names.items() if value is not None}
    written = {key: as_written(key, value) for key, value in settings.items() if value is not None}
    config = from_dict(RecordConfig, {**given_names, **written}, source="record")
    return record_store(config, data_dir, workers, quiet, own)


def record_store(
    config: RecordConfig,
    data_dir: Path | str,
    workers: int | None = None,
    quiet: bool = False,
    own: OwnFunctions = NONE_OWN,
) -> EnvironmentStore:
    """Record or open the store of a config. Functions that it names are imported only if the caller named them."""
    check_config(config)
    if workers is not None and workers < 0:
        raise UserError(f"workers must not be negative, got {workers}")
    num_workers = os.cpu_count() or 1 if workers is None else workers
    config = with_file_hash(config)
    final = store_path(config, on_disk(data_dir))
    if final.is_dir():
        store = _open_own(final, config)
        say_if_changed(final, store.manifest.get("code", {}), code_hashes(config, own))
        return store
    if config.source:
        raise UserError(f"{final} is not there, and its frames were recorded elsewhere: import their file again")
    try:
        with store_lock(final, "recording", quiet):
            if not final.is_dir():
                _build(config, final, num_workers, quiet, own)
    except OSError as error:
        raise refused_by_system(f"cannot record into {data_dir}", error) from error
    return _open_own(final, config)


def _open_own(path: Path, config: RecordConfig) -> EnvironmentStore:
    """The store at the path of a config. A store that was moved there may belong to another config."""
    store = open_environment_store(path)
    if store.config != config:
        raise UserError(f"{path} holds a store with hash {config_hash(store.config)}: it was moved there; move it back")
    return store


def _build(config: RecordConfig, final: Path, workers: int, quiet: bool, own: OwnFunctions) -> None:
    found = survey(config, own)
    layout = found.layout
    code = code_hashes(config, own)
    directory = open_building(final, config, found, code)
    finished = [lane for lane in range(config.lanes) if is_finished(directory, lane)]
    left = [lane for lane in range(config.lanes) if lane not in finished]
    done = sum(map(config.lane_steps, finished))
    # While lanes are joined, all frames exist twice.
    require_space(final.parent, found.row_bytes * (2 * config.steps - done), f"{config.steps:,} steps of {config.env}")
    try:
        with Tracker(f"recording {config.subject}", config.steps, "steps", quiet, start=done) as tracker:
            if own == NONE_OWN and workers:
                _play_in_processes(config, found, directory, left, workers, tracker)
            else:
                for lane in left:
                    play_lane(config, layout, lane, directory, own, tracker.advance)
        layout, num_episodes = join_lanes(config.lanes, layout, directory)
    except UserError:
        shutil.rmtree(directory, ignore_errors=True)  # the user will change the code, so what it played cannot be used
        raise
    write_manifest(directory, config, layout, num_episodes, found.versions, code)
    write_stamps(directory, store_files(layout))
    remove_parts(directory)
    publish_directory(directory, final)


def _play_in_processes(
    config: RecordConfig, found: Survey, directory: Path, lanes: list[int], workers: int, tracker: Tracker
) -> None:
    job = {
        "config": to_dict(config),
        "layout": found.layout.as_dict(),
        "directory": str(directory),
        "path": [os.path.abspath(folder) for folder in sys.path],
        "plugins": allowed_plugins(),
    }
    try:
        play_in_processes("manicap.environments.lane_worker", job, lanes, workers, tracker.advance)
    except LaneDied as died:
        raise RecordingError(f"lane {died.lane} of {config.env} {died.cause}; rerun to resume") from None
