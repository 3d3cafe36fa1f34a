"""The state of every cell of a grid, read from its directory; safe while others work on it."""

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manicap.bench.cell import damaged_files, is_done, measured, read_error
from manicap.bench.grid import Cell, Grid
from manicap.train.checkpoint import CheckpointStore
from manicap.train.claim import CHECKPOINTS

State = Literal["done", "running", "stopped", "failed", "left"]


@dataclass(frozen=True)
class CellStatus:
    cell: Cell
    state: State
    """stopped: started, but nobody is working on it now."""
    detail: str = ""


def grid_status(grid: Grid, runs_dir: Path) -> list[CellStatus]:
    return [cell_status(cell, runs_dir) for cell in grid.cells]


def cell_status(cell: Cell, runs_dir: Path) -> CellStatus:
    run_dir = runs_dir / cell.name
    if is_done(cell, runs_dir):
        return CellStatus(cell, "done")
    if is_locked(run_dir / ".cell.lock"):
        return CellStatus(cell, "running", progress(cell, run_dir))
    damaged = damaged_files(cell, runs_dir)
    if damaged:
        return CellStatus(
            cell, "stopped", f"damaged or missing, will be created again: {', '.join(path.name for path in damaged)}"
        )
    error = read_error(run_dir)
    if error is not None:
        return CellStatus(cell, "failed", error)
    if (run_dir / "config.toml").is_file():
        return CellStatus(cell, "stopped", progress(cell, run_dir))
    return CellStatus(cell, "left")


def progress(cell: Cell, run_dir: Path) -> str:
    """`step 120 of 600`, from the last checkpoint, or how many ways of probing are done."""
    if (run_dir / "encoder.json").is_file():
        done = sum(measured(run_dir, evaluation) is not None for evaluation in cell.evaluations)
        return f"trained, probed in {done} of {len(cell.evaluations)} ways"
    step = CheckpointStore(run_dir / CHECKPOINTS).newest_step()
    if step is None:
        return "no intact checkpoint yet"
    limit = f" of {cell.config.max_steps:,}" if cell.config.max_steps is not None else ""
    return f"checkpoint at step {step:,}{limit}"


def is_locked(path: Path) -> bool:
    """Whether somebody holds a cell's lock. A worker that asks at the same instant gets the cell one round later."""
    try:
        file = path.open()
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
