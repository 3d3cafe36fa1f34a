"""Commands of grids: bench plan, bench run, bench search, bench status, report."""

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Table

from manicap.bench.cell import Job, Outcome, damage_notes, is_done, run_cell
from manicap.bench.executors import ExecutorName, make_executor, run_grid
from manicap.bench.grid import Grid, read_grid
from manicap.bench.plan import plan_grid
from manicap.bench.scores import RunScore, gather_scores
from manicap.bench.search import FEW_LABELS, SHARES, Rung, Share, search_grid
from manicap.bench.status import grid_status
from manicap.core.errors import Failure
from manicap.core.paths import DATA_DIR, REPORTS_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Range, Threads
from manicap.report.grid_report import write_grid_report
from manicap.report.pages import write_page

SHOWN_NAMES = 3
"""Runs named in one line."""
GridPath = Annotated[
    Path,
    tyro.conf.Positional,
    tyro.conf.arg(help="A grid included with manicap, such as laptop, or the path of a file."),
]


def plan(grid: GridPath, threads: Threads | None = None, runs_dir: Path = RUNS_DIR, data_dir: Path = DATA_DIR) -> None:
    """Show the runs of a grid, which are done and which are left, and estimate the hours from a few measured steps.

    Args:
        grid: Name of a grid included with manicap, or the path of a file.
        threads: CPU threads per run; the grid's, or all cores, if omitted.
        runs_dir: Where runs are kept.
        data_dir: Where stores are kept.
    """
    loaded = read_grid(grid)
    _say_damage(loaded, runs_dir)
    found = plan_grid(loaded, runs_dir, data_dir, threads, _say)
    ways = len(loaded.evaluations)
    print(f"{loaded.title}: {found.num_cells} runs, each probed in {ways} way{'s' * (ways != 1)}")
    print(f"datasets: {', '.join(loaded.datasets)}; seeds: {', '.join(map(str, loaded.file.seeds))}")
    console = plain_console()
    console.print(_runs_table(loaded, runs_dir))
    print(f"done {found.num_done}, left {found.num_cells - found.num_done}")
    if found.num_done == found.num_cells:
        return
    table = Table(title=f"measured on {found.device}, {found.threads} threads")
    for name in ("column", "seconds per step", "seconds of probing per run"):
        table.add_column(name, justify="left" if name == "column" else "right")
    for label, rates in found.rates.items():
        table.add_row(label, f"{rates.step:.3f}", f"{rates.probes:.0f}")
    console.print(table)
    print(
        f"estimate for running one after another: {found.hours:.2f} hours (collecting {found.collect_hours:.2f},"
        f" training at most {found.train_hours:.2f}, probing about {found.probe_hours:.2f})"
    )
    if loaded.file.hours is not None:
        print(f"the file states {loaded.file.hours:g} hours on two cores for all its runs")


def run(
    grid: GridPath,
    executor: ExecutorName = "serial",
    workers: Threads | None = None,
    threads: Threads | None = None,
    gpus: Annotated[float, Range(0, 1024)] | None = None,
    address: str | None = None,
    quiet: bool = False,
    out: Path | None = None,
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Finish a grid: collect, train and probe what is left, then write its report.

    Stop at any time; rerun the command to resume. A cell that fails is recorded and the others continue. Several
    processes can run the same grid and share the work.

    Minutes on two cores: manicap bench run laptop

    On a cluster: manicap bench run table1 --executor ray --address auto --threads 4

    Args:
        grid: Name of a grid included with manicap, or the path of a file.
        executor: serial, processes (several on this machine) or ray (a cluster).
        workers: Number of parallel processes; one per core if omitted.
        threads: CPU threads per run; the grid's, or the cores divided among the workers, if omitted.
        gpus: GPUs per run on Ray; the grid's if omitted.
        address: Address of an existing Ray cluster; if omitted, a local one is started.
        quiet: Show no progress.
        out: Directory of the report; reports/NAME if omitted.
        runs_dir: Where runs are kept.
        data_dir: Where stores are kept.
    """
    loaded = _executed_with(read_grid(grid), threads=threads, gpus=gpus)
    chosen = make_executor(executor, workers, address, loaded.file.execution.gpus)
    hush = quiet or executor != "serial"
    summary = run_grid(loaded, chosen, work, runs_dir, data_dir, hush, (lambda line: None) if quiet else _say)
    print(f"{loaded.title}: {summary.done} runs done now, {summary.done_before} earlier, {len(summary.failed)} failed")
    _report(loaded, runs_dir, out)
    if summary.failed:
        raise Failure(f"{len(summary.failed)} runs failed; 'manicap bench status {grid}' says why")


def search(
    grid: GridPath,
    metric: str = FEW_LABELS,
    shares: tuple[Share, ...] = SHARES,
    executor: ExecutorName = "serial",
    workers: Threads | None = None,
    threads: Threads | None = None,
    quiet: bool = False,
    out: Path | None = None,
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Find the best column of a grid: train all for an eighth of its steps, the better half for a quarter, and so on.

    Columns are compared by their score with 200 labels, mean over datasets and seeds. Stop at any time; rerun the
    command to resume. The last rung is reported as a grid.

    Which training pays? manicap bench search training-search

    Args:
        grid: Name of a grid included with manicap, or the path of a file.
        metric: few_labels (the score with 200 labels), or a metric of the domain: r2, f1, labels_saved, accuracy, ...
        shares: Shares of the grid's steps, from the first rung to the last.
        executor: serial, processes (several on this machine) or ray (a cluster).
        workers: Number of parallel processes; one per core if omitted.
        threads: CPU threads per run; the grid's, or the cores divided among the workers, if omitted.
        quiet: Show no progress.
        out: Directory of the report; reports/NAME-search if omitted.
        runs_dir: Where runs are kept.
        data_dir: Where stores are kept.
    """
    loaded = _executed_with(read_grid(grid), threads=threads)
    chosen = make_executor(executor, workers, None, loaded.file.execution.gpus)
    hush, say = quiet or executor != "serial", (lambda line: None) if quiet else _say
    last = loaded

    def finish(part: Grid) -> Sequence[RunScore]:
        nonlocal last
        last = part
        run_grid(part, chosen, work, runs_dir, data_dir, hush, say)
        return gather_scores(part, runs_dir).scores

    rung = None
    for rung in search_grid(loaded, finish, metric, shares):
        plain_console().print(_rung_table(rung, metric))
    assert rung is not None
    print(f"best: {rung.kept[0]}")
    print(f"report: {write_grid_report(last, runs_dir, out or REPORTS_DIR / f'{loaded.name}-search', say)}")


def _executed_with(grid: Grid, **changes: float | None) -> Grid:
    """The grid with what was asked for in the place of its own execution settings."""
    asked = {name: value for name, value in changes.items() if value is not None}
    execution = replace(grid.file.execution, **asked)  # type: ignore[arg-type]
    return replace(grid, file=replace(grid.file, execution=execution))


def _rung_table(rung: Rung, metric: str) -> Table:
    table = Table(title=f"{rung.share:.3g} of the steps", box=SIMPLE_HEAD, pad_edge=False)
    for name, side in (("column", "left"), ("steps", "right"), (metric, "right"), ("", "left")):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for label, score in rung.scores.items():
        told = "failed" if math.isnan(score) else f"{score:.3f}"
        table.add_row(label, f"{rung.steps[label]:,}", told, "continues" if label in rung.kept else "")
    return table


def work(job: Job) -> Outcome:
    """Run a cell and write the page of its run."""
    return run_cell(job, show=write_page)


def status(grid: GridPath, runs_dir: Path = RUNS_DIR) -> None:
    """Show the state of each run of a grid, even while it is running.

    Args:
        grid: Name of a grid included with manicap, or the path of a file.
        runs_dir: Where runs are kept.
    """
    loaded = read_grid(grid)
    found = grid_status(loaded, runs_dir)
    plain_console().print(_runs_table(loaded, runs_dir))
    counts = Counter(item.state for item in found)
    print(", ".join(f"{counts[state]} {state}" for state in ("done", "running", "stopped", "failed", "left")))
    for item in found:
        if item.detail:
            print(f"{item.state}: {item.cell.name}: {item.detail}")


def report(grid: GridPath, out: Path | None = None, runs_dir: Path = RUNS_DIR) -> None:
    """Write the tables and figures of a grid, and one page with all of them, from the results so far.

    Tables are written as Markdown, LaTeX and CSV in the paper's layout, figures as SVG and PDF. report.html is
    self-contained.

    Args:
        grid: Name of a grid included with manicap, or the path of a file.
        out: Directory of the report; reports/NAME if omitted.
        runs_dir: Where runs are kept.
    """
    loaded = read_grid(grid)
    _say_damage(loaded, runs_dir)
    missing = [cell.name for cell in loaded.cells if not is_done(cell, runs_dir)]
    if missing:
        more = f" and {len(missing) - SHOWN_NAMES} more" if len(missing) > SHOWN_NAMES else ""
        names = ", ".join(missing[:SHOWN_NAMES])
        _say(f"{len(missing)} of {len(loaded.cells)} runs have no result yet and are left blank: {names}{more}")
    _report(loaded, runs_dir, out)


def _runs_table(grid: Grid, runs_dir: Path) -> Table:
    """Seeds done for each dataset and column; the longer of the two runs down the rows."""
    done = {cell.name for cell in grid.cells if is_done(cell, runs_dir)}
    labels, datasets = [column.label for column in grid.columns], list(grid.datasets)
    by_dataset = len(datasets) >= len(labels)
    down, across = (datasets, labels) if by_dataset else (labels, datasets)
    table = Table(title="seeds done", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in across:
        table.add_column(name, justify="right", overflow="fold")
    for row in down:
        cells = []
        for name in across:
            place = (row, name) if by_dataset else (name, row)
            runs = [cell for (dataset, label, _), cell in grid.places.items() if (dataset, label) == place]
            cells.append(f"{sum(cell.name in done for cell in runs)} of {len(runs)}")
        table.add_row(row, *cells)
    return table


def _report(grid: Grid, runs_dir: Path, out: Path | None) -> None:
    print(f"report: {write_grid_report(grid, runs_dir, out or REPORTS_DIR / grid.name, _say)}")


def _say_damage(grid: Grid, runs_dir: Path) -> None:
    for note in damage_notes(grid.cells, runs_dir):
        _say(note)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
