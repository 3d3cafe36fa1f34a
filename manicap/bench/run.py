"""The main job: collect, pretrain, probe. Every finished stage is found and skipped, an interrupted one goes on."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manicap.bench.checks import AnyEvaluation, check_job, prepare_data
from manicap.bench.differences import differences_from_paper
from manicap.bench.evaluation import EvaluationConfig, evaluate_run, result_path
from manicap.bench.same_data import require_same_data
from manicap.core.files import atomic_write
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.results import write_result
from manicap.evaluate.diagnostics.training import measure_batch
from manicap.evaluate.feature_cache import remove_features
from manicap.methods import find_method
from manicap.methods.base import PresetName
from manicap.train.config import PretrainConfig
from manicap.train.distributed import is_first_process
from manicap.train.loop import pretrain
from manicap.train.run_config import RunConfig
from manicap.train.setup import Execution


def run_job(
    config: PretrainConfig,
    evaluation: EvaluationConfig,
    seeds: Sequence[int] = (0,),
    execution: Execution = Execution(),  # noqa: B008 - frozen
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
    converged: bool = False,
    ceiling: PretrainConfig | None = None,
    keep_features: bool = False,
) -> list[Path]:
    """Train and probe `config` for every seed. Each run's directory ends with `result.json`.

    `converged` puts the scores of a converged logistic regression beside those of the linear probe. The protocol's
    probe stops early on features that it learns slowly; this one tells what is linearly there. `ceiling` is a run to
    train and probe too (see `supervised_config`), whose scores are shown beside. `keep_features` leaves the features on
    disk for probes to come.

    What is wrong with the probing is said before anything is trained. Under torchrun all processes train and the first
    one probes; the others get an empty list.
    """
    for each in (config, *(() if ceiling is None else (ceiling,))):
        check_job(each, [evaluation])
    run_dirs = []
    for seed in dict.fromkeys(seeds):

        def probed(run_dir: Path, how: EvaluationConfig = evaluation) -> dict[str, Any]:
            return evaluate_run(run_dir, how, data_dir, execution.threads, execution.quiet)

        run_dir = _trained(replace(config, seed=seed), evaluation, execution, runs_dir, data_dir)
        top = None
        if ceiling is not None:
            top = _trained(replace(ceiling, seed=seed), evaluation, execution, runs_dir, data_dir)
        if not is_first_process():
            continue
        result = probed(run_dir)
        if converged and evaluation.probe == "linear":
            result["converged"] = probed(run_dir, replace(evaluation, probe="logistic"))["evaluation"]
        if top is not None:
            result["supervised"] = probed(top)["evaluation"]
        result["differences_from_paper"] = differences_from_paper(result, len(set(seeds)))
        write_result(run_dir / "result.json", result)
        predictions = result_path(run_dir, evaluation).with_suffix(".npz")
        atomic_write(run_dir / "predictions.npz", predictions.read_bytes())
        for path in () if keep_features else filter(None, (run_dir, top)):
            remove_features(path)
        run_dirs.append(run_dir)
    return run_dirs


def announce(config: RunConfig, evaluation: AnyEvaluation, run_dir: Path, execution: Execution, data_dir: Path) -> None:
    """Say what becomes of a run, and prepare the data of one that is still to be trained; the first process alone."""
    if not is_first_process():
        return
    require_same_data(config, run_dir, data_dir)
    is_trained = (run_dir / "encoder.json").is_file()
    if not execution.quiet:
        print(f"{run_dir}: {'trained before' if is_trained else 'training'}", file=sys.stderr)
    if not is_trained:
        prepare_data(config, [evaluation], data_dir, execution.threads, execution.quiet)


def supervised_config(config: PretrainConfig, preset: PresetName) -> PretrainConfig:
    """The same frames, batches and steps for the network trained on the labels."""
    return replace(config, method="supervised", settings=find_method("supervised").settings_type.preset(preset))


def _trained(
    config: PretrainConfig, evaluation: EvaluationConfig, execution: Execution, runs_dir: Path, data_dir: Path
) -> Path:
    run_dir = runs_dir / config.run_name
    announce(config, evaluation, run_dir, execution, data_dir)
    pretrain(config, run_dir, execution, data_dir, observe=measure_batch)
    return run_dir
