"""The main job: prepare, train, probe, show. Finished stages are skipped, an interrupted one is resumed."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manicap.core.files import atomic_write
from manicap.core.memo import opened_once
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.diagnostics.training import measure_batch
from manicap.domains.base import find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.result import RunResult
from manicap.domains.run_config import RunConfig
from manicap.jobs.checks import check_job
from manicap.jobs.differences import differences_from_paper
from manicap.jobs.probing import probe, result_path
from manicap.jobs.same_data import require_same_data
from manicap.probing.feature_cache import remove_features
from manicap.train.distributed import is_first_process
from manicap.train.loop import pretrain
from manicap.train.setup import Execution

Show = Callable[[Path, Path], Any]
"""Writes the page of a run, from the run's directory and the data directory."""


def run_job(
    config: RunConfig,
    evaluation: EvaluationConfig,
    seeds: Sequence[int] = (0,),
    execution: Execution = Execution(),  # noqa: B008 - frozen
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
    options: Any = None,
    keep_features: bool = False,
    show: Show | None = None,
) -> list[Path]:
    """Train and probe `config` for every seed; each run's directory then holds `result.json` and its page.

    `options` are the domain's own: what else to measure and show beside the scores. `keep_features` leaves the features
    on disk for further probes. Mistakes in the evaluation are reported before anything is trained. Under torchrun all
    processes train and the first one probes; the others return an empty list.
    """
    domain = find_domain(config.domain)
    companions = () if options is None else domain.companions(config, evaluation, options)
    check_job(config, [evaluation], data_dir)
    for other in companions:
        check_job(other.config or config, [other.evaluation], data_dir)
    run_dirs = []
    for seed in dict.fromkeys(seeds):
        with opened_once():
            probed = [evaluation, *(other.evaluation for other in companions if other.config is None)]
            run_dir = trained(replace(config, seed=seed), probed, execution, runs_dir, data_dir)
            others = {
                other.name: run_dir
                if other.config is None
                else trained(replace(other.config, seed=seed), [other.evaluation], execution, runs_dir, data_dir)
                for other in companions
            }
            if not is_first_process():
                continue
            result = probe(run_dir, evaluation, data_dir, execution.threads, execution.quiet)
            for other in companions:
                beside = probe(others[other.name], other.evaluation, data_dir, execution.threads, execution.quiet)
                result.beside[other.name] = beside.evaluation
            result.differences_from_paper = tuple(differences_from_paper(result, len(set(seeds))))
            keep(result, run_dir)
            if show is not None:
                show(run_dir, data_dir)
            for path in () if keep_features else {run_dir, *others.values()}:
                remove_features(path)
            run_dirs.append(run_dir)
    return run_dirs


def trained(
    config: RunConfig, evaluations: Sequence[EvaluationConfig], execution: Execution, runs_dir: Path, data_dir: Path
) -> Path:
    """The directory of the trained run: prepared, trained or resumed if necessary."""
    run_dir = runs_dir / config.run_name
    if is_first_process():
        require_same_data(config, run_dir, data_dir)
        is_trained = (run_dir / "encoder.json").is_file()
        if not execution.quiet:
            print(f"{run_dir}: {'already trained' if is_trained else 'training'}", file=sys.stderr)
        if not is_trained:
            domain = find_domain(config.domain)
            domain.prepare(config, evaluations, data_dir, execution.threads, execution.quiet)
    return pretrain(config, run_dir, execution, data_dir, observe=measure_batch)


def keep(result: RunResult, run_dir: Path) -> None:
    """Write `result.json` and `predictions.npz`: the run's own result, beside those of other ways of probing."""
    result.write(run_dir / "result.json")
    predictions = result_path(run_dir, result.evaluation_config).with_suffix(".npz")
    atomic_write(run_dir / "predictions.npz", predictions.read_bytes())
