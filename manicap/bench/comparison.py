"""Finished runs side by side: how they were probed, what must agree before anything is probed, and the comparison."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from manicap.bench.checks import AnyEvaluation, feature_width
from manicap.bench.domains import DOMAINS
from manicap.bench.evaluation import require_runs
from manicap.core.config import check_config, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.results import has_result, read_result
from manicap.evaluate.compare import Comparison, Metric, check_comparable, compare
from manicap.evaluate.feature_cache import remove_features
from manicap.methods.base import Domain
from manicap.train.config import read_run_config
from manicap.train.encoder_files import read_description
from manicap.train.run_config import RunConfig


def compare_runs(
    run_dirs: Sequence[Path],
    evaluation: AnyEvaluation,
    metric: Metric,
    baseline: str | None,
    allow_mismatch: bool,
    data_dir: Path,
    threads: int | None = None,
) -> Comparison:
    """Probe the runs where they have not been, and compare. What cannot be ranked is refused before any probing."""
    require_runs(tuple(run_dirs))
    check_config(evaluation)
    configs = [read_run_config(run_dir / "config.toml") for run_dir in run_dirs]
    domain = domain_of(run_dirs)
    planned = [_planned(run_dir, config, evaluation) for run_dir, config in zip(run_dirs, configs, strict=True)]
    check_comparable(planned, baseline, allow_mismatch)
    evaluate_run = DOMAINS[domain].evaluate_run
    results = []
    for run_dir in run_dirs:
        results.append(evaluate_run(run_dir, evaluation, data_dir, threads))
        remove_features(run_dir)
    return compare(results, metric=metric, baseline=baseline, allow_mismatch=allow_mismatch)


def domain_of(run_dirs: Sequence[Path]) -> Domain:
    """What all of the runs learned from."""
    by_domain: dict[Domain, Path] = {}
    for run_dir in run_dirs:
        by_domain.setdefault(read_run_config(run_dir / "config.toml").domain, run_dir)
    if len(by_domain) > 1:
        told = ", ".join(f"{run_dir} ({domain})" for domain, run_dir in by_domain.items())
        raise UserError(f"runs on games and runs on images cannot be compared: {told}")
    return next(iter(by_domain), "atari")


def evaluation_of(run_dirs: Sequence[Path], told: Collection[str] = ()) -> AnyEvaluation:
    """How the runs' own jobs probed them; the default for runs that were not. Where they differ, the caller must say.

    `told` are the settings that the caller chooses itself.
    """
    domain = DOMAINS[domain_of(run_dirs)]
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    values: dict[str, Any] = {}
    for run_dir in run_dirs:
        path = run_dir / "result.json"
        if not has_result(path):
            continue
        probed = from_dict(domain.evaluation_type, read_result(path)["evaluation_config"], source=str(path))
        for field in fields(probed):
            found[field.name][str(getattr(probed, field.name))].append(run_dir.name)
        values = values or to_dict(probed)
    apart = {key: names for key, names in found.items() if len(names) > 1 and key not in told}
    if apart:
        ways = "; ".join(
            f"{key} {', '.join(f'{value} ({names[0]})' for value, names in by_value.items())}"
            for key, by_value in apart.items()
        )
        flags = " ".join(f"--{key.replace('_', '-')}" for key in apart)
        raise UserError(f"the runs were probed in different ways: {ways}; say how to probe all of them: {flags}")
    return from_dict(domain.evaluation_type, values)


def _planned(run_dir: Path, config: RunConfig, evaluation: AnyEvaluation) -> dict[str, Any]:
    """What is known of a result before it is measured."""
    description = read_description(run_dir)
    shape = tuple(description["input_shape"])
    width = feature_width(config.method, config.settings, evaluation.probe_input, shape)
    seen = getattr(evaluation, "width", None) or width
    if seen > width:
        raise UserError(f"width must be at most the {width} features of {config.method}, got {seen}")
    subject = {"dataset" if config.domain == "images" else "game": config.subject}
    return subject | {
        "method": config.method,
        "seed": config.seed,
        "pretrain_config": to_dict(config),
        "evaluation": {"width": seen},
    }
