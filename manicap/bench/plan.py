"""The cost of a grid, from a few measured steps: each column's training step, its encoder, its probe, the emulator.

Runs are assumed to take all the steps they are allowed; early stopping can only shorten them. A linear probe is assumed
to stop after `PROBE_EPOCHS` epochs. Stores are counted once. Steps are measured on random frames, which cost as much as
real ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from manicap.bench.cell import is_done
from manicap.bench.costs import MEASURED_STEPS, Rates, measure
from manicap.bench.grid import Grid
from manicap.core.config import to_dict
from manicap.domains.base import find_domain
from manicap.domains.run_config import RunConfig
from manicap.train.device import choose_device, keep_freed_memory, set_threads
from manicap.train.setup import count_steps


@dataclass(frozen=True)
class Plan:
    """Hours for everything that is left, one run after another."""

    num_cells: int
    num_done: int
    threads: int
    device: str
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
    collecting = grid.domain.collect_seconds([(cell.config, cell.evaluations) for cell in left], data_dir)
    trained = [
        measured[kinds[c.name]].step * num_steps(c.config, data_dir)
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
        rates=columns,
        collect_hours=collecting / threads / 3600,
        train_hours=sum(trained) / 3600,
        probe_hours=sum(measured[kinds[cell.name]].probes for cell in left) / 3600,
    )


def num_steps(config: RunConfig, data_dir: Path) -> int:
    """Maximum number of training steps, counted as in training."""
    return count_steps(config, find_domain(config.domain).samples_per_epoch(config, data_dir))


def kind_of(config: RunConfig) -> str:
    """Runs of one kind cost the same: they differ only in game and seed."""
    return str({key: value for key, value in to_dict(config).items() if key not in ("game", "seed")})
