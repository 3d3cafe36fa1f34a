"""Speed and memory of recording environments, and of training on small colour frames, as ratios within one run.

    python benchmarks/record.py [--steps 40000] [--workers 2]

The bare loop plays and renders and stores nothing: what the environment alone costs. Run it alone on the machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from collect import WorkerMemory
from torch.utils.flop_counter import FlopCounterMode

from manicap.algorithms.base import Batch, MethodContext
from manicap.algorithms.dim_c_plus import DIMCPlus
from manicap.environments.config import RecordConfig
from manicap.environments.making import NONE_OWN, make_environment
from manicap.environments.recording import record, record_store

SIZES = {"CartPole-v1": (96, 96), "MiniGrid-DoorKey-8x8-v0": (64, 64)}
ATARI, SMALL = (1, 210, 160), (3, 96, 96)


@dataclass(frozen=True)
class Options:
    steps: int = 40_000
    rounds: int = 3
    """Recordings, with bare loops before and after each."""
    workers: int = 2
    memory_steps: tuple[int, ...] = (20_000, 100_000)
    batch_size: int = 48
    repeats: int = 5
    """Times of a training step are the best of this many."""


def bare_loop_rate(name: str, steps: int) -> float:
    """Frames a second of one process that only plays and renders."""
    env = make_environment(RecordConfig(name), NONE_OWN)
    env.action_space.seed(0)
    env.reset(seed=0)
    env.render()
    start = time.perf_counter()
    for _ in range(steps):
        env.render()
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return steps / (time.perf_counter() - start)


def parallel_bare_rate(name: str, steps: int, workers: int) -> float:
    """Frames a second of that many bare loops at the same time."""
    command = [sys.executable, __file__, "bare", name, str(steps // workers)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=one_thread) for _ in range(workers)]
    # Pygame may greet on the same stream: the rate is the last word.
    return sum(float(process.communicate()[0].split()[-1]) for process in processes)


def compare_rates(name: str, options: Options, scratch: Path) -> None:
    rates, ratios = [], []
    bare = parallel_bare_rate(name, options.steps, options.workers)
    for seed in range(options.rounds):
        config = RecordConfig(name, options.steps, seed, frame_size=SIZES[name])
        start = time.perf_counter()
        record_store(config, scratch, options.workers, quiet=True)
        rates.append(options.steps / (time.perf_counter() - start))
        before, bare = bare, parallel_bare_rate(name, options.steps, options.workers)
        ratios.append(2 * rates[-1] / (before + bare))  # what else the machine does changes by the minute
    height, width = SIZES[name]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"{name} at {height} x {width}: {statistics.median(rates):.0f} frames/s recorded, {options.workers} bare loops"
        f" {bare:.0f}; ratio {statistics.median(ratios):.2f}, median of {each}  (target: 0.8)",
        flush=True,
    )


def measure_memory(options: Options, scratch: Path) -> None:
    for steps in options.memory_steps:
        with WorkerMemory() as memory:
            record("square:Square", steps=steps, data_dir=scratch, workers=options.workers, quiet=True)
        print(f"{steps:,} frames of 96 x 96 x 3: {memory.peak:.0f} MB a worker  (target: 400 MB)", flush=True)


def training_step(shape: tuple[int, int, int], batch_size: int) -> tuple[Callable[[], None], float]:
    """A step of DIM-C+ as quick trains it, and its FLOP."""
    settings = replace(DIMCPlus.settings_type.preset("quick"), encoder="fitting")
    statistics_of_pixels = (torch.full(shape, 0.5), torch.full(shape, 0.25))
    method = DIMCPlus(settings, MethodContext(input_shape=shape, pixel_statistics=statistics_of_pixels))
    frames = torch.randint(0, 256, (batch_size, method.frames_per_sample, *shape), dtype=torch.uint8)
    optimizer = torch.optim.Adam(method.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(Batch(frames)).total.backward()
        optimizer.step()

    with FlopCounterMode(display=False) as counter:
        step()
    return step, float(counter.get_total_flops())


def compare_training(options: Options) -> None:
    (atari, atari_flop), (small, small_flop) = (training_step(shape, options.batch_size) for shape in (ATARI, SMALL))
    seconds: dict[str, list[float]] = {"atari": [], "small": []}
    for _ in range(options.repeats):  # in turn: what else the machine does changes by the minute
        for name, step in (("atari", atari), ("small", small)):
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    best = {name: min(found) for name, found in seconds.items()}
    print(
        f"DIM-C+ step, batch {options.batch_size}, {torch.get_num_threads()} threads:"
        f" 96 x 96 x 3 {best['small']:.2f} s, 210 x 160 gray {best['atari']:.2f} s;"
        f" ratio {best['small'] / best['atari']:.2f},"
        f" of FLOP {small_flop / atari_flop:.2f} ({small_flop / 1e9:.1f} and {atari_flop / 1e9:.1f} GFLOP)"
    )


def main(options: Options) -> None:
    compare_training(options)
    with tempfile.TemporaryDirectory(prefix="manicap-benchmark-") as scratch:
        measure_memory(options, Path(scratch))
        for name in SIZES:
            compare_rates(name, options, Path(scratch))


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        print(bare_loop_rate(sys.argv[2], int(sys.argv[3])))
    else:
        main(tyro.cli(Options))
