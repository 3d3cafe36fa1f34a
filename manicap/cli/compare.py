"""The command `compare`."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import tyro

from manicap.cli.runs import run_dirs_in
from manicap.cli.signature import choice, with_types
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Threads
from manicap.domains.evaluation import EvaluationConfig
from manicap.jobs.comparison import compare_runs, domain_of, evaluation_of

RunPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(help="Directories of the runs.")]


def compare(
    runs: RunPaths,
    config: EvaluationConfig,
    metric: str | None = None,
    baseline: str | None = None,
    allow_mismatch: bool = False,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Compare runs probed in the same way: mean and interquartile mean with bootstrap intervals, and a paired test.

    Each row is one config over several seeds; a method trained in several ways has a row for each. Runs that differ in
    protocol, annotation set, probe, width, games or images are not ranked; the reasons are given.

    By default the runs are compared as they were probed. A flag changes a single setting, and the runs are probed
    again first: manicap compare runs/pong-st-dim-* runs/pong-dim-c+-* --probe-input backbone

    Args:
        runs: Directories of the runs.
        config: How to probe them.
        metric: What to compare; if omitted, labels saved, or the first metric that the runs' probe has.
        baseline: Method to pair the others with; the best if omitted.
        allow_mismatch: Compare runs that cannot be ranked. The reasons are printed below the table.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        data_dir: Where stores and datasets are kept.
    """
    comparison = compare_runs(runs, config, metric, baseline, allow_mismatch, data_dir, threads)
    probed = ", ".join(f"{field.name} {getattr(config, field.name)}" for field in fields(config))
    print(f"{comparison.metric}, {probed}\n{comparison}")


def compare_for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`compare` with the flags of what the runs learned from; their defaults are how the runs were probed."""
    runs = run_dirs_in(arguments)
    told = {word.split("=")[0].lstrip("-").replace("-", "_") for word in arguments if word.startswith("--")}
    metrics = domain_of(runs).metrics
    return with_types(compare, config=evaluation_of(runs, told), metric=(choice(metrics) | None, None))


compare.for_arguments = compare_for_arguments  # type: ignore[attr-defined]
