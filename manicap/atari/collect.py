"""Collection: lanes played in parallel processes into one store.

    store = collect(StoreConfig("pong", steps=100_000))

Lanes are processes, not threads, because ALE holds the GIL while it plays. The store is built in a hidden directory
beside its final location and renamed when complete. A lock makes a second collector of the same store wait and then use
the first one's copy; the next collector removes what a killed one left behind.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.integrity import open_store, write_stamps
from manicap.atari.lane_worker import LaneHashes, Policy, play_lane
from manicap.atari.store import EPISODE, Store, StoreConfig, store_path, write_manifest
from manicap.core.config import check_config, to_dict
from manicap.core.errors import Failure, UserError, refused_by_system
from manicap.core.files import exclusive_lock, publish_directory, require_space
from manicap.core.progress import Tracker


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

    Args:
        config: Game, steps, seed and lanes.
        data_dir: Where stores are kept.
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
    final = store_path(config, Path(data_dir))
    if final.is_dir():
        return open_store(final)
    try:
        with exclusive_lock(final.parent / f".{final.name}.lock", on_wait=lambda: _say_waiting(final, quiet)):
            if final.is_dir():
                return open_store(final)
            for leaving in final.parent.glob(f".{final.name}.building-*"):
                shutil.rmtree(leaving, ignore_errors=True)
            _build(config, final, workers or os.cpu_count() or 1, policy, quiet)
    except OSError as error:
        raise refused_by_system(f"cannot collect into {data_dir}", error) from error
    return open_store(final)


def _build(config: StoreConfig, final: Path, workers: int, policy: Policy | None, quiet: bool) -> None:
    needed = config.steps * (FRAME_SHAPE[0] * FRAME_SHAPE[1] + RAM_SIZE)
    require_space(final.parent, needed, f"{config.steps:,} steps of {config.game}")
    scratch = final.parent / f".{final.name}.building-{os.getpid()}"
    scratch.mkdir()
    try:
        _allocate(scratch / "frames.npy", (config.steps, *FRAME_SHAPE))
        _allocate(scratch / "ram.npy", (config.steps, RAM_SIZE))
        with Tracker(f"collecting {config.game}", config.steps, "steps", quiet) as tracker:
            if policy is None:
                hashes = _play_in_processes(config, scratch, workers, tracker)
            else:
                hashes = {
                    lane: play_lane(config, lane, scratch, policy, tracker.advance) for lane in range(config.lanes)
                }
        num_episodes = _join_episodes(config, scratch)
        lanes = [hashes[lane] for lane in range(config.lanes)]
        known = {"frames.npy": [lane.frames for lane in lanes], "ram.npy": [lane.ram for lane in lanes]}
        write_manifest(scratch, config, num_episodes, known)
        write_stamps(scratch)
        publish_directory(scratch, final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _allocate(path: Path, shape: tuple[int, ...]) -> None:
    """Create an .npy file with its blocks reserved, so that a full disk is noticed now and not after half an hour."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    size = array.offset + array.nbytes
    del array
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            free = shutil.disk_usage(path.parent).free
            raise OSError(
                error.errno, f"{error.strerror}: the store needs {size / 1e6:.0f} MB and {free / 1e6:.0f} MB are free"
            ) from error


def _play_in_processes(
    config: StoreConfig, directory: Path, num_workers: int, tracker: Tracker
) -> dict[int, LaneHashes]:
    """Run `num_workers` processes, each fed the next lane by a thread; the first failure ends all of them."""
    lanes: queue.SimpleQueue[int] = queue.SimpleQueue()
    for lane in range(config.lanes):
        lanes.put(lane)
    guard = threading.Lock()

    def report(rows: int) -> None:
        with guard:
            tracker.advance(rows)

    workers = [_Worker(config, directory) for _ in range(min(num_workers, config.lanes))]
    pool = ThreadPoolExecutor(len(workers))
    try:
        futures = [pool.submit(worker.play_all, lanes, report) for worker in workers]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        return {lane: hashes for future in done for lane, hashes in future.result().items()}
    finally:
        for worker in workers:
            worker.process.kill()
        pool.shutdown(wait=True)
        for worker in workers:
            worker.process.communicate()


class _Worker:
    """A `lane_worker` process and the conversation with it."""

    def __init__(self, config: StoreConfig, directory: Path) -> None:
        job = json.dumps({"config": to_dict(config), "directory": str(directory)})
        command = [sys.executable, "-m", "manicap.atari.lane_worker", job]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)
        self.game = config.game

    def play_all(self, lanes: "queue.SimpleQueue[int]", report: Callable[[int], None]) -> dict[int, LaneHashes]:
        hashes: dict[int, LaneHashes] = {}
        while True:
            try:
                lane = lanes.get_nowait()
            except queue.Empty:
                return hashes
            hashes[lane] = self._play(lane, report)

    def _play(self, lane: int, report: Callable[[int], None]) -> LaneHashes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with contextlib.suppress(BrokenPipeError):  # a dead worker is explained below
            self.process.stdin.write(f"{lane}\n")
        for line in self.process.stdout:
            match line.split(" ", 2):
                case ["done", frames, ram]:
                    return LaneHashes(frames, ram.strip())
                case ["error", number, reason]:
                    raise OSError(int(number), f"lane {lane}: {reason.strip()}")
                case [rows]:
                    report(int(rows))
        code = self.process.wait()
        cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        complaint = self.process.stderr.read().strip().splitlines()[-1:]
        reason = "".join(f" ({line})" for line in complaint)
        raise CollectionError(f"lane {lane} of {self.game} {cause}{reason}; nothing was kept: collect it again")


def _join_episodes(config: StoreConfig, directory: Path) -> int:
    parts = [directory / f"episodes-{lane}.npy" for lane in range(config.lanes)]
    episodes = np.concatenate([np.load(part) for part in parts])
    assert episodes.dtype == EPISODE
    assert episodes["length"].sum() == config.steps
    np.save(directory / "episodes.npy", episodes)
    for part in parts:
        part.unlink()
    return len(episodes)


def _say_waiting(final: Path, quiet: bool) -> None:
    if not quiet:
        print(f"another process is collecting {final}: waiting for its copy", file=sys.stderr)
