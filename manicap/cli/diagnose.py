"""`manicap diagnose`: what the representations of finished runs look like."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from manicap.bench.diagnosis import DiagnosisConfig, diagnose_run
from manicap.bench.evaluation import require_runs
from manicap.bench.image_diagnosis import ImageDiagnosisConfig, diagnose_image_run
from manicap.bench.image_evaluation import read_image_config
from manicap.cli.images import names_image_run
from manicap.core.config import check_config
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Threads
from manicap.core.results import has_result
from manicap.evaluate.diagnostics.alarm import within_limits
from manicap.report.diagnostics import diagnostics_table
from manicap.report.image_page import write_image_page
from manicap.report.run_page import write_run_page
from manicap.train.config import read_config

NAMES_WIDTH, RUN_WIDTH = 44, 12
"""Columns of the terminal that the names of measures and one run take; more runs go into a table of their own."""
RunPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(help="Directories of the runs.")]


def diagnose(
    runs: RunPaths,
    config: DiagnosisConfig,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Rank, spread, information, heads and manifold capacity of finished runs, and a warning where one has collapsed.

    Each run keeps its numbers in diagnostics.json; docs/diagnostics.md says how to read them.

    Did C+ raise the capacity? manicap diagnose runs/pong-dim-ua-s0-* runs/pong-dim-uac+-s0-*

    Args:
        runs: Directories of the runs.
        config: What to measure them on.
        threads: CPU threads; OMP_NUM_THREADS or all cores if absent.
        data_dir: Where stores live.
    """
    _require(runs, config)
    for run in runs:
        read_config(run / "config.toml")  # refuses runs on images before anything is measured
    results = [diagnose_run(run, config, data_dir, threads) for run in runs]
    _show(runs, results, lambda run: write_run_page(run, data_dir))


def diagnose_images(
    runs: RunPaths,
    config: ImageDiagnosisConfig,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Rank, spread, information, heads and manifold capacity of runs on images, and a warning where one has collapsed.

    Each run keeps its numbers in diagnostics.json; docs/diagnostics.md says how to read them.

    Did C+ raise the capacity? manicap diagnose runs/cifar10-simclr-s0-* runs/cifar10-simclr-c+-s0-*

    Args:
        runs: Directories of the runs.
        config: What to measure them on.
        threads: CPU threads; OMP_NUM_THREADS or all cores if absent.
        data_dir: Where datasets live.
    """
    _require(runs, config)
    for run in runs:
        read_image_config(run)
    results = [diagnose_image_run(run, config, data_dir, threads) for run in runs]
    _show(runs, results, lambda run: write_image_page(run, data_dir))


# Runs on images are measured on other things.
diagnose.for_arguments = lambda words: diagnose_images if names_image_run(words) else diagnose  # type: ignore[attr-defined]


def _require(runs: tuple[Path, ...], config: DiagnosisConfig | ImageDiagnosisConfig) -> None:
    if not runs:
        raise UserError("say which runs: manicap diagnose RUN [RUN ...]")
    check_config(config)
    require_runs(runs)


def _show(runs: Sequence[Path], results: Sequence[dict[str, Any]], write_page: Callable[[Path], Path]) -> None:
    """The table, what was noticed, and the page of each run that has one."""
    console = plain_console()
    together = max(1, (console.width - NAMES_WIDTH) // RUN_WIDTH)
    for start in range(0, len(results), together):
        console.print(diagnostics_table(results[start : start + together]))
    for run, result in zip(runs, results, strict=True):
        for sentence in result["notes"]:
            print(f"{run.name}: {sentence}")
        for sentence in result["alarms"]:
            print(f"{run.name}: ALARM: {sentence}")
        if not result["alarms"]:
            print(f"{run.name}: {within_limits(result['measures'])}")
        if has_result(run / "result.json"):
            print(f"page: {write_page(run)}")
