"""The job on images: pretrain, probe. Every finished stage is found and skipped, an interrupted one goes on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from manicap.bench.checks import check_job
from manicap.bench.differences import differences_from_paper
from manicap.bench.evaluation import result_path
from manicap.bench.image_evaluation import ImageEvaluationConfig, evaluate_image_run
from manicap.bench.run import announce
from manicap.core.files import atomic_write
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.results import write_result
from manicap.evaluate.diagnostics.training import measure_batch
from manicap.evaluate.feature_cache import remove_features
from manicap.evaluate.image_check import ImageCheck
from manicap.images.selection import require_dataset
from manicap.train.distributed import is_first_process
from manicap.train.image_config import ImageConfig
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
    keep_features: bool = False,
) -> list[Path]:
    """Train and probe `config` for every seed. Each run's directory ends with `result.json`.

    `keep_features` leaves the features on disk for probes to come.

    What is wrong with the probing is said before anything is trained. Under torchrun all processes train and the first
    one probes; the others get an empty list.
    """
    check_job(config, [evaluation])
    require_dataset(config.dataset)
    run_dirs = []
    for seed in dict.fromkeys(seeds):
        seeded = replace(config, seed=seed)
        run_dir = runs_dir / seeded.run_name
        announce(seeded, evaluation, run_dir, execution, data_dir)
        train_images(seeded, run_dir, execution, data_dir)
        if not is_first_process():
            continue
        result = evaluate_image_run(run_dir, evaluation, data_dir, execution.threads, execution.quiet)
        result["differences_from_paper"] = differences_from_paper(result, len(set(seeds)))
        write_result(run_dir / "result.json", result)
        predictions = result_path(run_dir, evaluation).with_suffix(".npz")
        atomic_write(run_dir / "predictions.npz", predictions.read_bytes())
        if not keep_features:
            remove_features(run_dir)
        run_dirs.append(run_dir)
    return run_dirs
