"""Collection: lanes played in parallel processes into one store.

    store = collect(StoreConfig("pong", steps=100_000))

Lanes are processes, not threads, because ALE holds the GIL while it plays. The store is built in a hidden directory
beside its final location and renamed when complete. A lock makes a second collector of the same store wait and then use
the first one's copy; the next collector removes what a killed one left behind.

A data directory may be a URL (`manicap.core.remote`): then the store is downloaded instead if it is there, and uploaded
otherwise.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import RAM_SIZE
from manicap.atari.integrity import open_store
from manicap.atari.lane_worker import Policy, play_lane
from manicap.atari.leavings import remove_leavings, remove_leavings_if_idle
from manicap.atari.ram import write_ram
from manicap.atari.remote import check_writable, fetch_store, keep_uploaded
from manicap.atari.screens import NUM_PAIRS, SHADES
from manicap.atari.store import EPISODE, FILES, FORMAT, STEP, Store, StoreConfig, store_path, write_manifest
from manicap.core.config import check_config, to_dict
from manicap.core.errors import Failure, UserError, refused_by_system
from manicap.core.files import publish_directory, require_space
from manicap.core.progress import Tracker
from manicap.core.remote import Remote, local_directory, remote_of
from manicap.play.integrity import write_stamps
from manicap.play.leavings import building_path, store_lock
from manicap.play.workers import LaneDied, play_in_processes

BYTES_PER_STEP = 2500
"""More than any game takes; what is free is compared before anything is played."""


class CollectionError(Failure):
    """A lane could not be completed; nothing was kept."""


def collect(
    config: StoreConfig,
    data_dir: Path | str = "data",
    workers: int | None = None,
    policy: Policy | None = None,
    quiet: bool = False,
) -> Store:
    """Play a game and store its frames and RAM; if the store already exists, open it.

        store = manicap.collect(manicap.StoreConfig("pong", steps=2_400))
        store.frames[0], store.ram[0]        # uint8 [210, 160] and [128]
        store.steps["action"][0]             # what was played from that frame

    Args:
        config: Game, steps, seed and lanes.
        data_dir: Where stores are kept: a directory, or a URL such as `s3://bucket/manicap`, of which a local cache
            holds copies.
        workers: Number of processes that play; one per core if absent.
        policy: Maps the gray frame (uint8 [210, 160]) to an index into the game's minimal action set; random play if
            absent. It is called in this process, one lane after the other, and requires its own name in
            `config.policy`.
        quiet: Show no progress.
    """
    check_config(config)
    if workers is not None and workers < 1:
        raise UserError(f"workers must be at least 1, got {workers}")
    if (policy is None) != (config.policy == "random"):
        raise UserError(
            f"the policy named {config.policy!r} needs a function: collect(config, policy=...)"
            if policy is None
            else "a policy of your own needs a name of its own: StoreConfig(..., policy='my-agent')"
        )
    directory = local_directory(data_dir)
    remote = remote_of(directory)
    store = _open_or_build(config, directory, remote, workers or os.cpu_count() or 1, policy, quiet)
    if remote is not None:
        keep_uploaded(store, remote, quiet)
    return store


def _open_or_build(
    config: StoreConfig, data_dir: Path, remote: Remote | None, workers: int, policy: Policy | None, quiet: bool
) -> Store:
    final = store_path(config, data_dir)
    if final.is_dir():
        store = _open_own(final, config)
        remove_leavings_if_idle(store)
        return store
    try:
        with store_lock(final, "collecting", quiet):
            remove_leavings(final)
            if final.is_dir():
                return _open_own(final, config)
            if remote is None or not fetch_store(remote, final, quiet):
                if remote is not None:
                    check_writable(remote, data_dir)
                _build(config, final, workers, policy, quiet)
    except OSError as error:
        raise refused_by_system(f"cannot collect into {data_dir}", error) from error
    return _open_own(final, config)


def _open_own(path: Path, config: StoreConfig) -> Store:
    """The store at the place of a config; one that was moved there may be another's."""
    store = open_store(path)
    if store.config != config:
        raise UserError(f"{path} holds a store of {store.config}, not of {config}: it was moved there; move it back")
    return store


def _build(config: StoreConfig, final: Path, workers: int, policy: Policy | None, quiet: bool) -> None:
    twice = 1 + 1 / config.lanes  # while lanes are joined, the frames of one are there twice
    require_space(final.parent, int(config.steps * BYTES_PER_STEP * twice), f"{config.steps:,} steps of {config.game}")
    scratch = building_path(final)
    scratch.mkdir()
    try:
        with Tracker(f"collecting {config.game}", config.steps, "steps", quiet) as tracker:
            if policy is None:
                _play_in_processes(config, scratch, workers, tracker)
            else:
                for lane in range(config.lanes):
                    play_lane(config, lane, scratch, policy, tracker.advance)
        num_episodes = join_lanes(config, scratch)
        write_manifest(scratch, config, num_episodes)
        write_stamps(scratch, FILES[FORMAT])
        publish_directory(scratch, final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def join_lanes(config: StoreConfig, directory: Path) -> int:
    """Make the files of a store of those of its lanes; returns the number of lives."""
    lanes = range(config.lanes)
    sizes = [(directory / f"frames-{lane}").stat().st_size for lane in lanes]

    def parts(name: str, dtype: Any) -> list[NDArray[Any]]:
        return [np.fromfile(directory / f"{name}-{lane}", dtype) for lane in lanes]

    steps, episodes, ram = parts("steps", STEP), parts("episodes", EPISODE), parts("ram", np.uint8)
    colours = [table.reshape(-1, NUM_PAIRS, 2) for table in parts("colours", np.uint8)]
    for lane in lanes:
        steps[lane]["offset"] += sum(sizes[:lane])
        own = steps[lane]["table"] < SHADES
        steps[lane]["table"][own] += sum(map(len, colours[:lane]))
    np.save(directory / "steps.npy", np.concatenate(steps))
    write_ram(directory / "ram.zst", np.concatenate(ram).reshape(-1, RAM_SIZE))
    np.save(directory / "episodes.npy", np.concatenate(episodes))
    np.save(directory / "colours.npy", np.concatenate(colours))
    with (directory / "frames.zst").open("wb") as joined:
        for lane in lanes:
            with (directory / f"frames-{lane}").open("rb") as part:
                shutil.copyfileobj(part, joined, 1 << 20)
            (directory / f"frames-{lane}").unlink()  # so that the disk holds the frames of one lane twice, not of all
    for path in directory.glob("*-*"):
        path.unlink()
    return sum(map(len, episodes))


def _play_in_processes(config: StoreConfig, directory: Path, num_workers: int, tracker: Tracker) -> None:
    job = {"config": to_dict(config), "directory": str(directory)}
    try:
        play_in_processes("manicap.atari.lane_worker", job, range(config.lanes), num_workers, tracker.advance)
    except LaneDied as died:
        raise CollectionError(
            f"lane {died.lane} of {config.game} {died.cause}; nothing was kept: collect it again"
        ) from None
