"""Commands on images: the job, and `evaluate` for its runs."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from manicap.bench.checks import check_job
from manicap.bench.differences import setting_sentence
from manicap.bench.evaluation import require_runs
from manicap.bench.image_evaluation import ImageEvaluationConfig, evaluate_image_run, read_image_config
from manicap.bench.image_run import run_image_job
from manicap.cli.train import chosen_preset, parser_default, value_of
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Seeds, Threads
from manicap.core.results import read_result
from manicap.evaluate.feature_cache import remove_features
from manicap.evaluate.image_result import ImageEvaluation
from manicap.methods.base import PresetName
from manicap.report.image_page import write_image_page
from manicap.report.tables import image_job_table
from manicap.train.config import plain_config, read_run_config
from manicap.train.image_config import ImageConfig, ImageProtocolName, preset_image_config
from manicap.train.setup import Execution

RunPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the run.")]


def images(
    config: ImageConfig,
    evaluation: ImageEvaluationConfig,
    execution: Execution,
    preset: PresetName = "quick",
    seeds: Seeds = (0,),
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Train on images without labels, probe what was learned, show it.

    Ends with a table beside the published numbers and the floor of an untrained network, and a page per seed
    (report.html) with curves, accuracy by class and the nearest neighbours of test images. CIFAR-10 and STL-10 are
    downloaded if they are not in data-dir. Finished stages are skipped, interrupted ones go on.

    Minutes on two cores: manicap images --dataset cifar10 --method barlow-twins-c+

    Two methods, then side by side: manicap images --method simclr --seeds 0 1; manicap images --method simclr-c+
    --seeds 0 1; manicap compare runs/cifar10-simclr*

    As the published numbers were measured: manicap images --method simclr-c+ --preset paper --protocol tsai2021

    Several GPUs: torchrun --nproc-per-node 4 -m manicap images --method simclr-c+ --preset paper

    Args:
        config: What to train.
        evaluation: How to probe it.
        execution: How to run it.
        preset: quick (minutes on two cores), standard (ResNet-18, 50 epochs on all images: a GPU), paper (Table 5 of
            arXiv 2405.13848: ResNet-50, 1000 epochs). Other flags change single values of it.
        seeds: Seeds, one run each.
        runs_dir: Where runs live.
        data_dir: Where datasets live: cifar10/cifar-10-batches-bin, stl10/stl10_binary.
    """
    plain = plain_config(config)
    assert isinstance(plain, ImageConfig)
    run_dirs = run_image_job(plain, evaluation, seeds, execution, runs_dir, data_dir)
    if not run_dirs:  # a process of torchrun other than the first
        return
    results = [read_result(run_dir / "result.json") for run_dir in run_dirs]
    console = plain_console()
    console.print(image_job_table(results))
    console.print(setting_sentence(results[0]), highlight=False)
    for run_dir in run_dirs:
        print(f"page: {write_image_page(run_dir, data_dir)}")


def images_for_arguments(arguments: Sequence[str]) -> Callable[..., None]:
    """`images` with the flags of the method and the defaults of the preset that the arguments name."""
    preset = chosen_preset(arguments, "quick")
    protocol: ImageProtocolName = "tsai2021" if value_of("--protocol", arguments) == "tsai2021" else "clean"
    dataset = value_of("--dataset", arguments) or ImageConfig.dataset
    method = value_of("--method", arguments) or ImageConfig.method
    # The seeds are the job's; the protocol is the evaluation's and serves both halves.
    default = parser_default(preset_image_config(preset, dataset, method, protocol), fixed=("seed", "protocol"))
    config_type = type(default)

    def specialised(
        config: config_type = default,  # type: ignore[valid-type]
        evaluation: ImageEvaluationConfig = ImageEvaluationConfig(),  # noqa: B008 - frozen
        execution: Execution = Execution(),  # noqa: B008 - frozen
        preset: PresetName = preset,
        seeds: Seeds = (0,),
        runs_dir: Path = RUNS_DIR,
        data_dir: Path = DATA_DIR,
    ) -> None:
        images(config, evaluation, execution, preset, seeds, runs_dir, data_dir)

    specialised.__doc__ = images.__doc__
    return specialised


images.for_arguments = images_for_arguments  # type: ignore[attr-defined]


def holds_config(word: str) -> bool:
    """Whether a word of the command line is the directory of a run; it may be anything, such as too long for a path."""
    return not word.startswith("-") and os.path.isfile(os.path.join(word, "config.toml"))


def names_image_run(arguments: Sequence[str]) -> bool:
    """Whether the first run among the arguments is one on images."""
    first = next((Path(word) / "config.toml" for word in arguments if holds_config(word)), None)
    return first is not None and isinstance(read_run_config(first), ImageConfig)


def evaluate_images(
    run: RunPath, config: ImageEvaluationConfig, threads: Threads | None = None, data_dir: Path = DATA_DIR
) -> None:
    """Probe the encoder of a finished run on images. Each way of probing is measured once and kept beside the run.

    By nearest neighbours: manicap evaluate RUN --probe knn

    Args:
        run: Directory of the run.
        config: How to probe it.
        threads: CPU threads; OMP_NUM_THREADS or all cores if absent.
        data_dir: Where datasets live.
    """
    require_runs((run,))
    check_job(read_image_config(run), [config])
    result = evaluate_image_run(run, config, data_dir, threads)
    remove_features(run)
    print(ImageEvaluation.from_dict(result["evaluation"]))
