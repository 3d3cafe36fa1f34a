"""What the capacity regularizer costs, in training and at inference, as ratios within one run; and its measurement.

    python benchmarks/capacity.py [--preset paper] [--batch-size 64] [--repeats 5] [--device cpu]
    python benchmarks/capacity.py --of manifolds     # capacity of 50 manifolds of 500 points in 512 dimensions

Run it alone on the machine, or with one thread and --cpu-time. arXiv 2405.13848, section 4: DIM-C+ costs more in
pretraining, since every head goes through the global term, and less at inference, where its heads are gone and DIM-UAC+
still has its charts. DIM-UA is the base of both comparisons.

For manifolds: seconds of GLUE with 200 draws and of mean-field theory, and how many times longer one non-negative least
squares problem per draw over all points takes (scipy's, on `--literal-draws` draws), which gives the same numbers.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import tyro
from scipy.optimize import nnls

from manicap.algorithms.base import Batch, Method, MethodContext, PresetName
from manicap.diagnostics import glue, manifold_capacity
from manicap.diagnostics.cones import project_on_cones
from manicap.domains.atari.config import atari_preset
from manicap.train.device import keep_freed_memory
from manicap.train.setup import build_method, build_optimizer

BASE = "dim-ua"
METHODS = ("st-dim", BASE, "dim-uac+", "dim-c+")


@dataclass(frozen=True)
class Options:
    of: Literal["training", "manifolds"] = "training"
    """training: the regularizer; manifolds: the measurement of manifold capacity."""
    literal_draws: int = 1
    """Draws solved literally, for the ratio."""
    preset: PresetName = "paper"
    batch_size: int = 64
    repeats: int = 5
    """Rounds; each times every method once, and the best of them counts."""
    device: str = "cpu"
    cpu_time: bool = False
    """Count the process's CPU time, not the clock's: on a busy machine, with one thread."""


def best_of_rounds(calls: Mapping[str, Callable[[], object]], options: Options) -> dict[str, float]:
    """Seconds of each call. In turn, so that what else the machine does meets all of them."""
    clock = time.process_time if options.cpu_time else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.repeats + 1):
        for name, call in calls.items():
            synchronize(options)
            start = clock()
            call()
            synchronize(options)
            seconds[name].append(clock() - start)
    return {name: min(times[1:]) for name, times in seconds.items()}  # the first round warms up


def synchronize(options: Options) -> None:
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()


def training_step(name: str, method: Method, frames: torch.Tensor, options: Options) -> Callable[[], None]:
    config = atari_preset(options.preset, "pong", name)
    optimizer = build_optimizer(method, config, torch.device(options.device))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(Batch(frames)).total.backward()
        optimizer.step()

    return step


def represent(method: Method, frames: torch.Tensor) -> Callable[[], torch.Tensor]:
    def call() -> torch.Tensor:
        with torch.inference_mode():
            return method.represent(frames)

    return call


def inference_parameters(method: Method) -> int:
    parts = (getattr(method, part) for part in method.inference_parts)
    return sum(parameter.numel() for part in parts for parameter in part.parameters())


def show(title: str, seconds: dict[str, float], of: str) -> None:
    ratios = ", ".join(f"{name} {seconds[name] / seconds[of]:.2f}" for name in seconds if name != of)
    print(f"{title}: {of} {1e3 * seconds[of]:.1f} ms; of that {ratios}")


def seconds_of(call: Callable[[], object], options: Options) -> float:
    clock = time.process_time if options.cpu_time else time.perf_counter
    start = clock()
    call()
    return clock() - start


def measure_manifolds(options: Options) -> None:
    count, points, width, dimension, draws = 50, 500, 512, 20, 200
    rng = np.random.default_rng(0)
    manifolds = []
    for _ in range(count):
        basis = np.linalg.qr(rng.standard_normal((width, dimension)))[0]
        around = rng.standard_normal((points, dimension))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        manifolds.append(rng.standard_normal(width) / np.sqrt(width) + around @ basis.T)
    print(f"{count} manifolds of {points} points in {width} dimensions: spheres of dimension {dimension} and radius 1")
    whole = seconds_of(lambda: glue(manifolds, np.random.default_rng(1), num_draws=draws), options)
    mean_field = seconds_of(lambda: manifold_capacity(manifolds, np.random.default_rng(1)), options)
    print(f"GLUE, {draws} draws: {whole:.1f} s; mean field, {draws} draws per manifold: {mean_field:.1f} s")

    targets = rng.standard_normal((options.literal_draws, width))
    signs = 2 * rng.integers(0, 2, (options.literal_draws, count)) - 1
    rays = [np.concatenate([y * x for y, x in zip(sign, manifolds, strict=True)]).T for sign in signs]
    literal = seconds_of(lambda: [nnls(a, t) for a, t in zip(rays, targets, strict=True)], options)
    ours = seconds_of(lambda: project_on_cones(manifolds, signs, targets), options)
    found = targets - project_on_cones(manifolds, signs, targets)[1]
    gap = max(float(np.abs(a @ nnls(a, t)[0] - p).max()) for a, t, p in zip(rays, targets, found, strict=True))
    per_draw = literal / options.literal_draws
    print(f"literal: {per_draw:.2f} s per draw, the same projections within {gap:.1g}; ours {ours:.2f} s for as many")
    print(f"literal over ours, {draws} draws: {per_draw * draws / whole:.0f} times")


def main(options: Options) -> None:
    if options.of == "manifolds":
        measure_manifolds(options)
        return
    keep_freed_memory()  # as training does
    threads = torch.get_num_threads()
    print(f"{threads} threads, {options.device}, float32, preset {options.preset}, batch {options.batch_size}")
    methods = {
        name: build_method(atari_preset(options.preset, "pong", name), MethodContext()).to(options.device)
        for name in METHODS
    }
    shape = (options.batch_size, 2, 1, 210, 160)
    frames = torch.randint(0, 256, shape, dtype=torch.uint8, device=options.device)
    steps = {name: training_step(name, method, frames, options) for name, method in methods.items()}
    show("training step", best_of_rounds(steps, options), BASE)
    for size in (options.batch_size, 1):
        calls = {name: represent(method, frames[:size, 0]) for name, method in methods.items()}
        seconds = best_of_rounds(calls, options)
        count = "1 frame" if size == 1 else f"{size} frames"
        show(f"inference, {count}", seconds, BASE)
        print(f"inference, {count}: dim-uac+ takes {seconds['dim-uac+'] / seconds['dim-c+']:.2f} times dim-c+")
    parameters = ", ".join(f"{name} {inference_parameters(method) / 1e6:.2f} M" for name, method in methods.items())
    print(f"parameters at inference: {parameters}")


if __name__ == "__main__":
    main(tyro.cli(Options))
