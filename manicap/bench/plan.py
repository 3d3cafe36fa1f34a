"""What a grid will cost, from a few measured steps: each column's training step, its encoder, its probe, the emulator.

Runs take the steps they are allowed; early stopping can only shorten them. A linear probe is taken to stop after
`PROBE_EPOCHS` epochs. Stores are counted once. Steps are measured on random frames, which cost what real ones do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manicap.atari.store import StoreConfig, store_path
from manicap.bench.cell import is_done
from manicap.bench.costs import MEASURED_STEPS, Rates, measure, measure_emulator
from manicap.bench.domains import stores_of
from manicap.bench.grid import Cell, Grid
from manicap.bench.steps import num_steps
from manicap.core.config import to_dict
from manicap.train.config import PretrainConfig
from manicap.train.device import choose_device, keep_freed_memory, set_threads
from manicap.train.run_config import RunConfig


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
    stores = {store for cell in left for store in _stores(cell) if not store_path(store, data_dir).is_dir()}
    frame = measure_emulator(next(iter(stores)).game) if stores else 0.0
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
        frame_seconds=frame,
        rates=columns,
        collect_hours=frame * sum(store.steps for store in stores) / threads / 3600,
        train_hours=sum(trained) / 3600,
        probe_hours=sum(measured[kinds[cell.name]].probes for cell in left) / 3600,
    )


def kind_of(config: RunConfig) -> str:
    """Runs of a kind cost the same: all but the game and the seed."""
    return str({key: value for key, value in to_dict(config).items() if key not in ("game", "seed")})


def _stores(cell: Cell) -> Sequence[StoreConfig]:
    """What has to be played; images have nothing to collect."""
    return stores_of(cell.config, cell.evaluations) if isinstance(cell.config, PretrainConfig) else ()  # type: ignore[arg-type]
