"""Commands of the main job: run, evaluate."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from manicap.bench.checks import check_job
from manicap.bench.differences import setting_sentence
from manicap.bench.evaluation import EvaluationConfig, evaluate_run, preset_evaluation, require_runs
from manicap.bench.run import run_job, supervised_config
from manicap.cli.images import evaluate_images, names_image_run
from manicap.cli.train import chosen_preset, preset_default, value_of
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Seeds, Threads
from manicap.core.results import read_result
from manicap.evaluate.feature_cache import remove_features
from manicap.evaluate.result import Evaluation
from manicap.methods.base import PresetName
from manicap.report.run_page import write_run_page
from manicap.report.tables import job_table
from manicap.train.config import PretrainConfig, plain_config, read_config
from manicap.train.setup import Execution

RunPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the run.")]


def run(
    config: PretrainConfig,
    evaluation: EvaluationConfig,
    execution: Execution,
    preset: PresetName = "quick",
    seeds: Seeds = (0,),
    converged: bool = True,
    ceiling: bool = False,
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """The whole job: collect a game, train an encoder on it without labels, probe what it has learned, show it.

    Ends with a table beside the published numbers and the floor of an untrained network, and a page per seed
    (report.html) with curves, scores and an episode player. Finished stages are skipped, interrupted ones go on.

    Minutes on two cores: manicap run --game pong --method dim-c+

    Over three seeds: manicap run --game pong --method st-dim --seeds 0 1 2

    Args:
        config: What to train.
        evaluation: How to probe it.
        execution: How to run it.
        preset: quick (minutes on two cores), standard (an hour or two), paper (the paper's setting). Other
            flags change single values of it.
        seeds: Seeds, one run each.
        converged: Fit a converged logistic regression too: the protocol's probe stops early on features that it learns
            slowly, an untrained network's among them.
        ceiling: Train the same network on the labels too, at the same budget, and show how far it gets.
        runs_dir: Where runs live.
        data_dir: Where stores live.
    """
    shared = replace(config, protocol=evaluation.protocol, annotation_set=evaluation.annotation_set)
    plain = plain_config(shared)
    assert isinstance(plain, PretrainConfig)
    supervised = supervised_config(plain, preset) if ceiling else None
    run_dirs = run_job(plain, evaluation, seeds, execution, runs_dir, data_dir, converged, supervised)
    if not run_dirs:  # a process of torchrun other than the first
        return
    results = [read_result(run_dir / "result.json") for run_dir in run_dirs]
    console = plain_console()
    console.print(job_table(results))
    console.print(setting_sentence(results[0]), highlight=False)
    for run_dir in run_dirs:
        print(f"page: {write_run_page(run_dir, data_dir)}")


def run_for_arguments(arguments: Sequence[str]) -> Callable[..., None]:
    """`run` with the flags of the method and the defaults of the preset that the arguments name."""
    preset = chosen_preset(arguments, "quick")
    # The seeds are the job's; protocol and annotation set are the evaluation's and serve both halves.
    fixed = ("seed", "protocol", "annotation_set")
    default = preset_default(value_of("--method", arguments) or PretrainConfig.method, preset, fixed)
    config_type = type(default)

    def specialised(
        config: config_type = default,  # type: ignore[valid-type]
        evaluation: EvaluationConfig = preset_evaluation(preset),  # noqa: B008 - frozen
        execution: Execution = Execution(),  # noqa: B008 - frozen
        preset: PresetName = preset,
        seeds: Seeds = (0,),
        converged: bool = True,
        ceiling: bool = False,
        runs_dir: Path = RUNS_DIR,
        data_dir: Path = DATA_DIR,
    ) -> None:
        run(config, evaluation, execution, preset, seeds, converged, ceiling, runs_dir, data_dir)

    specialised.__doc__ = run.__doc__
    return specialised


run.for_arguments = run_for_arguments  # type: ignore[attr-defined]


def evaluate(
    run: RunPath,
    config: EvaluationConfig,
    beside: Path | None = None,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Probe the encoder of a finished run. Each way of probing is measured once and kept beside the run.

    At the width that all methods share: manicap evaluate RUN --probe-input backbone

    Args:
        run: Directory of the run.
        config: How to probe it.
        beside: Another run, probed alike and shown in a column of its own; one of the method supervised is the ceiling.
        threads: CPU threads; OMP_NUM_THREADS or all cores if absent.
        data_dir: Where stores live.
    """
    runs = (run,) if beside is None else (run, beside)
    require_runs(runs)
    for path in runs:  # before anything is collected or encoded
        check_job(read_config(path / "config.toml"), [config])
    evaluation = Evaluation.from_dict(evaluate_run(run, config, data_dir, threads)["evaluation"])
    if beside is not None:
        other = evaluate_run(beside, config, data_dir, threads)
        evaluation.add_floor(other["method"], Evaluation.from_dict(other["evaluation"]))
    for path in runs:
        remove_features(path)
    print(evaluation)


# A run on images has other ways of probing, and other flags for them.
evaluate.for_arguments = lambda words: evaluate_images if names_image_run(words) else evaluate  # type: ignore[attr-defined]
