"""Speed and memory of collection and splitting, as ratios within one run.

    python benchmarks/collect.py [--steps 100000] [--game pong]

The bare loop calls `act` four times, reads both screens and the RAM, and stores nothing: what the emulator alone costs.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from manicap.atari.collect import collect
from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE, open_ale
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig
from manicap.play.protocol import FIXED
from manicap.play.splits import probe_splits


@dataclass(frozen=True)
class Options:
    game: str = "pong"
    steps: int = 100_000
    split_steps: int = 50_000
    rounds: int = 5
    """Collections, with bare loops before and after each."""
    workers: int = os.cpu_count() or 1


def bare_loop_rate(game: str, steps: int) -> float:
    """Steps a second of one process that only plays."""
    ale = open_ale(find_game(game), seed=0)
    actions = ale.getMinimalActionSet()
    choices = np.random.default_rng(0).integers(1, len(actions), steps)
    first, second, ram = np.empty(FRAME_SHAPE, np.uint8), np.empty(FRAME_SHAPE, np.uint8), np.empty(RAM_SIZE, np.uint8)
    ale.reset_game()
    start = time.perf_counter()
    for choice in choices:
        action = actions[choice]
        ale.act(action)
        ale.act(action)
        ale.act(action)
        ale.getScreenGrayscale(first)
        ale.act(action)
        ale.getScreenGrayscale(second)
        ale.getRAM(ram)
        if ale.game_over():
            ale.reset_game()
    return steps / (time.perf_counter() - start)


def parallel_bare_rate(game: str, workers: int) -> float:
    """Steps a second of that many bare loops at the same time: what the machine gives to several processes."""
    command = [sys.executable, __file__, "bare", game]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    return sum(float(process.communicate()[0]) for process in processes)


class WorkerMemory:
    """Highest resident memory of this process's children, in MB, watched from a thread."""

    def __enter__(self) -> "WorkerMemory":
        self.peak = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            children = subprocess.run(["ps", "-o", "rss=", "--ppid", str(os.getpid())], capture_output=True, text=True)
            self.peak = max([self.peak, *(int(word) / 1e3 for word in children.stdout.split())])

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def measure_split(path: Path) -> None:
    """Run in a process of its own, so that the peak memory is the split's alone."""
    start = time.perf_counter()
    splits = probe_splits(open_store(path), FIXED, "corrected", seed=0)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    frames = splits.counts["frames"]
    print(f"split and duplicate removal of {frames} frames: {seconds:.1f} s, {peak:.0f} MB  (target: 20 s, 1000 MB)")


def main(options: Options) -> None:
    print(f"{options.game}, {options.steps} steps, {options.workers} workers")
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as scratch:
        rates, ratios = [], []
        bare = parallel_bare_rate(options.game, options.workers)
        with WorkerMemory() as memory:
            for seed in range(options.rounds):
                start = time.perf_counter()
                collect(StoreConfig(options.game, options.steps, seed), scratch, options.workers, quiet=True)
                rates.append(options.steps / (time.perf_counter() - start))
                before, bare = bare, parallel_bare_rate(options.game, options.workers)
                ratios.append(2 * rates[-1] / (before + bare))  # what else the machine does changes by the minute
        print(f"{options.workers} bare loops at the same time: {bare:.0f} steps/s in all")
        print(f"collection, {options.workers} workers, hashing included: {statistics.median(rates):.0f} steps/s")
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"ratio to the bare loops: {statistics.median(ratios):.2f}, median of {each}  (target: 0.85)")
        print(f"highest resident memory of a worker: {memory.peak:.0f} MB  (target: 100 MB)")

        probe = StoreConfig(options.game, options.split_steps, purpose="probe")
        store = collect(probe, scratch, options.workers)
        command = [sys.executable, __file__, "split", str(store.path)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["split"]:
        measure_split(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["bare"]:
        print(bare_loop_rate(sys.argv[2], 10_000))
    else:
        main(tyro.cli(Options))
