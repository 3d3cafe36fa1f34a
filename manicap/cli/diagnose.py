"""`manicap diagnose`: what the representations of finished runs look like."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from manicap.cli.runs import run_dirs_in
from manicap.cli.signature import with_types
from manicap.core.config import check_config
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Threads
from manicap.core.results import has_result
from manicap.diagnostics.alarm import within_limits
from manicap.diagnostics.runs import RunDiagnosis
from manicap.jobs.comparison import domain_of
from manicap.jobs.diagnosis import diagnose_run
from manicap.report.diagnostics import diagnostics_table
from manicap.report.pages import write_page
from manicap.train.finished import require_runs

NAMES_WIDTH, RUN_WIDTH = 44, 12
"""Terminal columns taken by the names of the measures and by one run; further runs get a table of their own."""
RunPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(help="Directories of the runs.")]


def diagnose(
    runs: RunPaths,
    config: Any = None,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Measure rank, spread, information, heads and manifold capacity of finished runs, and warn of collapse.

    The numbers are kept in each run's diagnostics.json; docs/diagnostics.md explains how to read them.

    Did C+ raise the capacity? manicap diagnose runs/pong-dim-ua-s0-* runs/pong-dim-uac+-s0-*

    Args:
        runs: Directories of the runs.
        config: What to measure them on.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        data_dir: Where stores and datasets are kept.
    """
    if not runs:
        raise UserError("no run given; use: manicap diagnose RUN [RUN ...]")
    check_config(config)
    require_runs(runs)
    domain_of(runs)  # before anything is measured
    results = [diagnose_run(run, config, data_dir, threads) for run in runs]
    _show(runs, results, data_dir)


def diagnose_for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`diagnose` with the flags of what the runs learned from."""
    return with_types(diagnose, config=domain_of(run_dirs_in(arguments)).diagnosis_type())


diagnose.for_arguments = diagnose_for_arguments  # type: ignore[attr-defined]


def _show(runs: Sequence[Path], results: Sequence[RunDiagnosis], data_dir: Path) -> None:
    """Print the table and what was noticed, and update the page of each run that has one."""
    console = plain_console()
    together = max(1, (console.width - NAMES_WIDTH) // RUN_WIDTH)
    for start in range(0, len(results), together):
        console.print(diagnostics_table(results[start : start + together]))
    for run, result in zip(runs, results, strict=True):
        for sentence in result.notes:
            print(f"{run.name}: {sentence}")
        for sentence in result.alarms:
            print(f"{run.name}: ALARM: {sentence}")
        if not result.alarms:
            print(f"{run.name}: {within_limits(result.measures)}")
        if has_result(run / "result.json"):
            print(f"page: {write_page(run, data_dir)}")
