"""The main job: collect, pretrain, probe. Every finished stage is found and skipped, an interrupted one goes on."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manicap.bench.evaluation import EvaluationConfig, evaluate_run, result_path
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.results import write_result
from manicap.evaluate.diagnostics.training import measure_batch
from manicap.methods import find_method
from manicap.methods.base import PresetName
from manicap.train.config import PretrainConfig, preset_config
from manicap.train.loop import pretrain
from manicap.train.setup import Execution

PAPER_SEEDS = 5


def run_job(
    config: PretrainConfig,
    evaluation: EvaluationConfig,
    seeds: Sequence[int] = (0,),
    execution: Execution = Execution(),  # noqa: B008 - frozen
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
    converged: bool = False,
    ceiling: PretrainConfig | None = None,
) -> list[Path]:
    """Train and probe `config` for every seed. Each run's directory ends with `result.json`.

    `converged` puts the scores of a converged logistic regression beside those of the linear probe. The protocol's
    probe stops early on features that it learns slowly; this one tells what is linearly there. `ceiling` is a run to
    train and probe too (see `supervised_config`), whose scores are shown beside.
    """
    run_dirs = []
    for seed in dict.fromkeys(seeds):

        def probed(run_dir: Path, how: EvaluationConfig = evaluation) -> dict[str, Any]:
            return evaluate_run(run_dir, how, data_dir, execution.threads, execution.quiet)

        run_dir = _trained(replace(config, seed=seed), execution, runs_dir, data_dir)
        result = probed(run_dir)
        if converged and evaluation.probe == "linear":
            result["converged"] = probed(run_dir, replace(evaluation, probe="logistic"))["evaluation"]
        if ceiling is not None:
            top = _trained(replace(ceiling, seed=seed), execution, runs_dir, data_dir)
            result["supervised"] = probed(top)["evaluation"]
        result["differences_from_paper"] = differences_from_paper(result, len(set(seeds)))
        write_result(run_dir / "result.json", result)
        predictions = result_path(run_dir, evaluation).with_suffix(".npz")
        shutil.copyfile(predictions, run_dir / "predictions.npz")
        run_dirs.append(run_dir)
    return run_dirs


def supervised_config(config: PretrainConfig, preset: PresetName) -> PretrainConfig:
    """The same frames, batches and steps for the network trained on the labels."""
    return replace(config, method="supervised", settings=find_method("supervised").settings_type.preset(preset))


def differences_from_paper(result: dict[str, Any], num_seeds: int) -> list[str]:
    """What differs from the setting of the published numbers, so that nobody takes a quick run for a reproduction."""
    ours, evaluation = result["pretrain_config"], result["evaluation_config"]
    paper = preset_config("paper", ours["game"], ours["method"])
    found = []
    if ours["collect_steps"] != paper.collect_steps:
        found.append(f"{ours['collect_steps']:,} frames of play, not {paper.collect_steps:,}")
    if ours.get("max_steps") is not None and find_method(ours["method"]).is_trained:
        found.append(f"{result['training']['steps']:,} training steps, not up to {paper.max_epochs} epochs")
    for name, value in ours["settings"].items():
        published = getattr(paper.settings, name)
        if value != published:
            found.append(f"{name.replace('_', ' ')} {value}, not {published}")
    for name in ("batch_size", "learning_rate", "max_epochs"):
        if ours[name] != getattr(paper, name):
            found.append(f"{name.replace('_', ' ')} {ours[name]}, not {getattr(paper, name)}")
    if evaluation["probe_steps"] != EvaluationConfig.probe_steps:
        found.append(f"probed on {evaluation['probe_steps']:,} frames, not {EvaluationConfig.probe_steps:,}")
    if evaluation["protocol"] != "reference":
        found.append(f"protocol {evaluation['protocol']}, not the 2019 code's")
    if evaluation["annotation_set"] == "corrected":
        found.append("corrected annotations")
    if evaluation["probe"] != "linear":
        found.append(f"{evaluation['probe']} probe")
    if num_seeds != PAPER_SEEDS:
        found.append(f"{num_seeds} seed{'s' * (num_seeds != 1)}, not {PAPER_SEEDS}")
    return found


def _trained(config: PretrainConfig, execution: Execution, runs_dir: Path, data_dir: Path) -> Path:
    run_dir = runs_dir / config.run_name
    if not execution.quiet:
        known = (run_dir / "encoder.json").is_file()
        print(f"{run_dir}: {'trained before' if known else 'training'}", file=sys.stderr)
    pretrain(config, run_dir, execution, data_dir, observe=measure_batch)
    return run_dir
