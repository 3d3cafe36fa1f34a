"""What a grid will cost, from a few measured steps: each column's training step, its encoder, its probe, the emulator.

Runs take the steps they are allowed; early stopping can only shorten them. A linear probe is taken to stop after
`PROBE_EPOCHS` epochs. Stores are counted once. Steps are measured on random frames, which cost what real ones do.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.protocol import find_protocol
from manicap.atari.store import StoreConfig, store_path
from manicap.bench.cell import is_done
from manicap.bench.evaluation import EvaluationConfig
from manicap.bench.grid import Cell, Grid
from manicap.core.config import to_dict
from manicap.evaluate.evaluation import PROBES, PROTOCOL_STEPS
from manicap.evaluate.probes import LinearConfig, LinearProbes
from manicap.evaluate.sampling import ProbeData
from manicap.methods.base import Batch, Method, MethodContext, ProbeInput
from manicap.train.config import PretrainConfig
from manicap.train.device import choose_device, keep_freed_memory, set_threads
from manicap.train.setup import build_method, build_optimizer

MEASURED_STEPS = 3
PROBE_EPOCHS = 40
PROBE_ROWS = 1024
NUM_VARIABLES, NUM_VALUES = 12, 40
"""Of a typical game."""
TRAIN_SHARE, PROBE_SHARE = 0.8, 0.7


@dataclass(frozen=True)
class Rates:
    """Seconds, for one kind of run."""

    step: float
    """A training step."""
    probes: float
    """All evaluations, the untrained floor included."""


@dataclass(frozen=True)
class Plan:
    """Hours of all that is left, one run after the other."""

    num_cells: int
    num_done: int
    threads: int
    device: str
    frame_seconds: float
    """Playing and storing one step, on one core."""
    rates: Mapping[str, Rates]
    """By column label."""
    collect_hours: float
    train_hours: float
    probe_hours: float

    @property
    def hours(self) -> float:
        return self.collect_hours + self.train_hours + self.probe_hours


def plan_grid(
    grid: Grid, runs_dir: Path, data_dir: Path, threads: int | None, say: Callable[[str], None] = lambda line: None
) -> Plan:
    device = choose_device(grid.file.execution.device)
    threads = set_threads(threads or grid.file.execution.threads)
    if device.type == "cpu":
        keep_freed_memory()
    left = [cell for cell in grid.cells if not is_done(cell, runs_dir)]
    kinds = {cell.name: kind_of(cell.config) for cell in left}
    measured: dict[str, Rates] = {}
    for cell in left:
        if kinds[cell.name] not in measured:
            say(f"measuring {cell.config.method} ({MEASURED_STEPS} steps)")
            measured[kinds[cell.name]] = measure(cell, device)
    stores = {store for cell in left for store in stores_of(cell) if not store_path(store, data_dir).is_dir()}
    frame = measure_emulator(left[0].config.game) if stores else 0.0
    trained = [
        measured[kinds[c.name]].step * num_steps(c.config)
        for c in left
        if not (runs_dir / c.name / "encoder.json").is_file()
    ]
    columns: dict[str, Rates] = {}
    for (_, label, _), cell in grid.places.items():
        if cell.name in kinds:
            columns[label] = measured[kinds[cell.name]]
    return Plan(
        num_cells=len(grid.cells),
        num_done=len(grid.cells) - len(left),
        threads=threads,
        device=device.type,
        frame_seconds=frame,
        rates=columns,
        collect_hours=frame * sum(store.steps for store in stores) / threads / 3600,
        train_hours=sum(trained) / 3600,
        probe_hours=sum(measured[kinds[cell.name]].probes for cell in left) / 3600,
    )


def kind_of(config: PretrainConfig) -> str:
    """Runs of a kind cost the same: all but the data and the seed."""
    return str({key: value for key, value in to_dict(config).items() if key not in ("game", "seed")})


def num_steps(config: PretrainConfig) -> int:
    """Training steps at most."""
    steps = config.max_epochs * int(TRAIN_SHARE * config.collect_steps / config.batch_size)
    return min(steps, config.max_steps or steps)


def stores_of(cell: Cell) -> tuple[StoreConfig, ...]:
    steps = dict.fromkeys(evaluation.probe_steps for evaluation in cell.evaluations)
    return (cell.config.store_config, *(StoreConfig(cell.config.game, count, 0, "probe") for count in steps))


def measure(cell: Cell, device: torch.device) -> Rates:
    config = cell.config
    method = build_method(config, MethodContext(num_variables=NUM_VARIABLES)).to(device)
    generator = torch.Generator().manual_seed(0)
    step = _step_seconds(method, config, device, generator) if method.is_trained else 0.0
    method.eval()
    encoded = {kind: _encode_seconds(method, kind, device, generator) for kind in _inputs(cell.evaluations)}
    probes = 0.0
    for evaluation in cell.evaluations:
        seconds, width = encoded[evaluation.probe_input]
        probes += evaluation.probe_steps * seconds + probe_seconds(evaluation, evaluation.width or width)
    return Rates(step, 2 * probes)  # the untrained floor is encoded and probed alike


def _inputs(evaluations: Sequence[EvaluationConfig]) -> set[ProbeInput]:
    return {evaluation.probe_input for evaluation in evaluations}


def _step_seconds(method: Method, config: PretrainConfig, device: torch.device, generator: torch.Generator) -> float:
    B, T = config.batch_size, method.frames_per_sample
    frames_BTCHW = torch.randint(0, 256, (B, T, *method.context.input_shape), dtype=torch.uint8, generator=generator)
    labels_BV = torch.randint(0, NUM_VALUES, (B, NUM_VARIABLES), generator=generator) if method.needs_labels else None
    batch = Batch(
        frames_BTCHW.to(device),
        None if labels_BV is None else labels_BV.to(device),
        torch.Generator(device).manual_seed(0),
    )
    optimizer = build_optimizer(method, config, device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(batch).total.backward()
        optimizer.step()

    return _seconds(step, device)


@torch.no_grad()
def _encode_seconds(
    method: Method, kind: ProbeInput, device: torch.device, generator: torch.Generator
) -> tuple[float, int]:
    """Seconds a frame, and the width of its features."""
    frames = torch.randint(0, 256, (128, *method.context.input_shape), dtype=torch.uint8, generator=generator)
    frames = frames.to(device)
    return _seconds(lambda: method.represent(frames, kind), device) / len(frames), method.represent(
        frames[:1], kind
    ).shape[1]


def probe_seconds(evaluation: EvaluationConfig, width: int) -> float:
    """Fitting one probe on the evaluation's training frames."""
    rng = np.random.default_rng(0)
    features = rng.random((PROBE_ROWS, width), np.float32)
    labels = rng.integers(0, NUM_VALUES, (PROBE_ROWS, NUM_VARIABLES), dtype=np.uint8)
    data = ProbeData(features, labels, np.arange(PROBE_ROWS) // 64)
    protocol = find_protocol(evaluation.protocol)
    probe: Any = PROBES[evaluation.probe](protocol, 0, True)
    times = 1.0
    if evaluation.probe == "linear":
        probe = LinearProbes(LinearConfig(max_epochs=1), protocol)
        times = PROBE_EPOCHS * max(1, PROTOCOL_STEPS // evaluation.probe_steps)
    start = time.perf_counter()
    probe.fit(data, data)
    return (time.perf_counter() - start) * times * PROBE_SHARE * evaluation.probe_steps / PROBE_ROWS


def measure_emulator(game: str) -> float:
    """Seconds a step of one lane."""
    lane = Lane(find_game(game), 0, 0)
    lane.reset()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5:
        lane.step(lane.random_action())
        steps += 1
    return (time.perf_counter() - start) / steps


def _seconds(call: Callable[[], Any], device: torch.device) -> float:
    """Median of a few calls after a first one."""
    found = []
    for _ in range(MEASURED_STEPS + 1):
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append(time.perf_counter() - start)
    return median(found[1:])
