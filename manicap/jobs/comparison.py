"""Compare finished runs: how they were probed, what must agree before anything is probed, and the comparison."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from manicap.algorithms.width import feature_width
from manicap.core.config import check_config, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.results import has_result
from manicap.domains.base import Domain, find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.result import RunResult
from manicap.jobs.probing import probe
from manicap.probing.feature_cache import remove_features
from manicap.statistics.comparison import Comparison, Measured, check_comparable, compare
from manicap.train.finished import FinishedRun, require_runs


def compare_runs(
    run_dirs: Sequence[Path],
    evaluation: EvaluationConfig,
    metric: str | None,
    baseline: str | None,
    allow_mismatch: bool,
    data_dir: Path,
    threads: int | None = None,
    quiet: bool = False,
) -> Comparison:
    """Probe the runs where necessary, and compare. Runs that cannot be ranked are refused before any probing.

    Without `metric`, by the first of the domain's metrics that all results have.
    """
    require_runs(tuple(run_dirs))
    check_config(evaluation)
    domain = domain_of(run_dirs)
    planned = [_planned(FinishedRun(run_dir), evaluation) for run_dir in run_dirs]
    check_comparable(planned, baseline, allow_mismatch, domain.subjects_title)
    results = []
    for run_dir in run_dirs:
        results.append(measured(probe(run_dir, evaluation, data_dir, threads, quiet)))
        remove_features(run_dir)
    return compare(
        results,
        metric=metric,
        metrics=domain.metrics,
        baseline=baseline,
        allow_mismatch=allow_mismatch,
        subjects=domain.subjects_title,
    )


def domain_of(run_dirs: Sequence[Path]) -> Domain:
    """The domain that all runs learned from."""
    by_domain: dict[str, Path] = {}
    for run_dir in run_dirs:
        by_domain.setdefault(FinishedRun(run_dir).config.domain, run_dir)
    if len(by_domain) > 1:
        told = ", ".join(f"{run_dir} ({name})" for name, run_dir in by_domain.items())
        raise UserError(f"runs of different domains cannot be compared: {told}")
    return find_domain(next(iter(by_domain), "atari"))


def evaluation_of(run_dirs: Sequence[Path], told: Collection[str] = ()) -> EvaluationConfig:
    """How the runs' own jobs probed them, or the default if they did not. Where runs differ, the caller must choose.

    `told` holds the settings chosen by the caller.
    """
    domain = domain_of(run_dirs)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    values: dict[str, Any] = {}
    for run_dir in run_dirs:
        if not has_result(run_dir / "result.json"):
            continue
        probed = RunResult.read(run_dir / "result.json").evaluation_config
        for field in (each for each in fields(probed) if each.name not in probed.only_shown):
            found[field.name][str(getattr(probed, field.name))].append(run_dir.name)
        values = values or to_dict(probed)
    apart = {key: names for key, names in found.items() if len(names) > 1 and key not in told}
    if apart:
        ways = "; ".join(
            f"{key} {', '.join(f'{value} ({names[0]})' for value, names in by_value.items())}"
            for key, by_value in apart.items()
        )
        flags = " ".join(f"--{key.replace('_', '-')}" for key in apart)
        raise UserError(f"the runs were probed in different ways: {ways}; choose how to probe all of them: {flags}")
    return from_dict(domain.evaluation_type, values)


def measured(result: RunResult) -> Measured:
    """A result as the comparison sees it."""
    evaluation = result.evaluation
    return Measured(
        subject=result.subject,
        method=result.method,
        seed=result.seed,
        width=evaluation.width,
        scores=evaluation.metrics,
        store=evaluation.store,
        config=to_dict(result.config),
        probed={
            "protocol": evaluation.protocol,
            "annotation set": getattr(evaluation, "annotation_set", None),
            "probe": evaluation.probe,
            "probe options": evaluation.probe_options,
        },
        bounds=evaluation.bounds,
    )


def _planned(run: FinishedRun, evaluation: EvaluationConfig) -> Measured:
    """What is known about a result before it is measured."""
    config = run.config
    width = feature_width(config.method, config.settings, evaluation.probe_input, run.context)
    seen = getattr(evaluation, "width", None) or width
    if seen > width:
        raise UserError(f"width must be at most the {width} features of {config.method}, got {seen}")
    return Measured(config.subject, config.method, config.seed, seen, config=to_dict(config))
