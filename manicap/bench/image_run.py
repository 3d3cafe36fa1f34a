"""The job on images: pretrain, probe. Every finished stage is found and skipped, an interrupted one goes on."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manicap.bench.image_evaluation import ImageEvaluationConfig, evaluate_image_run, image_result_path
from manicap.bench.published import published_image_accuracy
from manicap.core.config import check_config
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.results import write_result
from manicap.evaluate.diagnostics.training import measure_batch
from manicap.evaluate.image_check import ImageCheck
from manicap.images.selection import require_dataset
from manicap.train.image_config import ImageConfig, preset_image_config
from manicap.train.loop import pretrain
from manicap.train.setup import Execution


def train_images(config: ImageConfig, run_dir: Path, execution: Execution, data_dir: Path = DATA_DIR) -> Path:
    """`pretrain` with the checks that the config asks for."""
    return pretrain(config, run_dir, execution, data_dir, ImageCheck(config, data_dir), measure_batch)


def run_image_job(
    config: ImageConfig,
    evaluation: ImageEvaluationConfig,
    seeds: Sequence[int] = (0,),
    execution: Execution = Execution(),  # noqa: B008 - frozen
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> list[Path]:
    """Train and probe `config` for every seed. Each run's directory ends with `result.json`.

    Under torchrun all processes train and the first one probes; the others get an empty list.
    """
    check_config(config)
    check_config(evaluation)
    require_dataset(config.dataset)
    run_dirs = []
    is_first = os.environ.get("RANK", "0") == "0"
    for seed in dict.fromkeys(seeds):
        seeded = replace(config, seed=seed)
        run_dir = runs_dir / seeded.run_name
        if is_first and not execution.quiet:
            is_trained = (run_dir / "encoder.json").is_file()
            print(f"{run_dir}: {'trained before' if is_trained else 'training'}", file=sys.stderr)
        train_images(seeded, run_dir, execution, data_dir)
        if not is_first:
            continue
        result = evaluate_image_run(run_dir, evaluation, data_dir, execution.threads, execution.quiet)
        result["differences_from_paper"] = differences_from_paper(result)
        write_result(run_dir / "result.json", result)
        shutil.copyfile(image_result_path(run_dir, evaluation).with_suffix(".npz"), run_dir / "predictions.npz")
        run_dirs.append(run_dir)
    return run_dirs


def differences_from_paper(result: dict[str, Any]) -> list[str]:
    """What differs from the setting of the published numbers, so that nobody takes a quick run for a reproduction."""
    ours, evaluation = result["pretrain_config"], result["evaluation_config"]
    paper = preset_image_config("paper", ours["dataset"], ours["method"], "tsai2021")
    probe, found = ImageEvaluationConfig(), []
    if ours["method"] not in published_image_accuracy(result["dataset"]):
        found.append(f"{ours['method']} on {result['dataset']} is not in the paper's Table 2")
    if "num_images" in ours:
        found.append(f"{ours['num_images']:,} training images, not all")
    if ours.get("max_steps") is not None:
        found.append(f"{result['training']['steps']:,} training steps, not {paper.max_epochs} epochs")
    for name, value in ours["settings"].items():
        if value != getattr(paper.settings, name):
            found.append(f"{_words(name)} {value}, not {getattr(paper.settings, name)}")
    for name in ("max_epochs", "batch_size", "learning_rate", "weight_decay", "recipe"):
        if ours.get(name) != getattr(paper, name):
            found.append(f"{_words(name)} {ours.get(name)}, not {getattr(paper, name)}")
    if "view_size" in ours:
        found.append(f"views of {ours['view_size']} pixels")
    for name in ("probe", "probe_epochs", "probe_batch_size"):
        if evaluation[name] != getattr(probe, name):
            found.append(f"{_words(name)} {evaluation[name]}, not {getattr(probe, name)}")
    if evaluation["protocol"] != "tsai2021":
        found.append(f"protocol {evaluation['protocol']}, not tsai2021")
    return found


def _words(name: str) -> str:
    return name.removeprefix("max_").replace("_", " ")
