"""The command `compare`, for runs on games and on images."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manicap.bench.checks import AnyEvaluation
from manicap.bench.comparison import compare_runs, domain_of, evaluation_of
from manicap.bench.evaluation import EvaluationConfig
from manicap.bench.image_evaluation import ImageEvaluationConfig
from manicap.cli.images import holds_config
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Threads
from manicap.evaluate.compare import Metric

RunPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(help="Directories of the runs.")]


def compare(
    runs: RunPaths,
    config: EvaluationConfig,
    metric: Literal["f1", "accuracy"] = "f1",
    baseline: str | None = None,
    allow_mismatch: bool = False,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Runs side by side, probed alike: mean and interquartile mean with bootstrap intervals, and a paired test.

    Runs of one config over several seeds make a row; a method that was trained in several ways has a row for each.
    Refuses to rank what differs in protocol, annotation set, probe, width, games or images, and says why.

    Runs are probed as their own jobs probed them. Flags change single settings of that, and the runs are probed so
    first: manicap compare runs/pong-st-dim-* runs/pong-dim-c+-* --probe-input backbone

    Args:
        runs: Directories of the runs.
        config: How to probe them.
        metric: What to compare.
        baseline: Method that the others are paired with; the best if absent.
        allow_mismatch: Compare what cannot be ranked; the reasons stay below the table.
        threads: CPU threads; OMP_NUM_THREADS or all cores if absent.
        data_dir: Where stores and datasets live.
    """
    _show(runs, config, metric, baseline, allow_mismatch, threads, data_dir)


def compare_for_arguments(arguments: Sequence[str]) -> Callable[..., None]:
    """`compare` with the flags of what the runs learned from; their defaults are how the runs were probed."""
    runs = [Path(word) for word in arguments if holds_config(word)]
    told = {word.split("=")[0].lstrip("-").replace("-", "_") for word in arguments if word.startswith("--")}
    default = evaluation_of(runs, told)
    on_images = domain_of(runs) == "images"
    config_type = type(default)
    metric_type = Literal["accuracy", "top5"] if on_images else Literal["f1", "accuracy"]
    first: Metric = "accuracy" if on_images else "f1"

    def specialised(
        runs: RunPaths,
        config: config_type = default,  # type: ignore[valid-type]
        metric: metric_type = first,  # type: ignore[valid-type]
        baseline: str | None = None,
        allow_mismatch: bool = False,
        threads: Threads | None = None,
        data_dir: Path = DATA_DIR,
    ) -> None:
        _show(runs, config, metric, baseline, allow_mismatch, threads, data_dir)

    specialised.__doc__ = compare.__doc__
    return specialised


compare.for_arguments = compare_for_arguments  # type: ignore[attr-defined]


def _show(
    runs: Sequence[Path],
    config: AnyEvaluation,
    metric: Metric,
    baseline: str | None,
    allow_mismatch: bool,
    threads: Threads | None,
    data_dir: Path,
) -> None:
    assert isinstance(config, EvaluationConfig | ImageEvaluationConfig)
    comparison = compare_runs(runs, config, metric, baseline, allow_mismatch, data_dir, threads)
    probed = ", ".join(f"{field.name} {getattr(config, field.name)}" for field in fields(config))
    print(f"{metric}, {probed}\n{comparison}")
