"""Commands of the main job: run, images, evaluate."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from manicap.algorithms.base import PresetName
from manicap.cli.runs import run_dirs_in
from manicap.cli.signature import chosen_domain, chosen_preset, default_config, value_of, with_types
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Seeds, Threads
from manicap.core.results import has_result
from manicap.domains.base import NoOptions, find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.result import RunResult
from manicap.domains.run_config import RunConfig, plain_config
from manicap.jobs.checks import check_job
from manicap.jobs.differences import setting_sentence
from manicap.jobs.probing import probe
from manicap.jobs.run import run_job
from manicap.probing.feature_cache import remove_features
from manicap.report.pages import job_table, write_page
from manicap.train.config_file import read_run_config
from manicap.train.finished import require_runs
from manicap.train.setup import Execution

RunPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the run.")]


def run(
    config: RunConfig,
    evaluation: EvaluationConfig,
    options: Any = NoOptions(),  # noqa: B008 - frozen
    execution: Execution = Execution(),  # noqa: B008 - frozen
    domain: str = "atari",
    preset: PresetName = "quick",
    seeds: Seeds = (0,),
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Run the whole job: prepare the data, train an encoder without labels, probe it, and show the result.

    Prints a table with the published numbers and the score of an untrained network, and writes a page per seed
    (report.html). Rerun the command to resume; the result is bit-identical to an uninterrupted run.

    Atari, minutes on two cores: manicap run --game pong --method dim-c+

    Your own environment: manicap run --env MiniGrid-DoorKey-8x8-v0 --frame-size 64 64

    Images, minutes on two cores: manicap run --dataset cifar10 --method barlow-twins-c+

    Three seeds: manicap run --game pong --method st-dim --seeds 0 1 2

    Several GPUs: torchrun --nproc-per-node 4 -m manicap run --dataset cifar10 --method simclr-c+ --preset paper

    Flags depend on what is named: 'manicap run --env CartPole-v1 --help' and 'manicap run --dataset cifar10 --help'
    show those of environments and images, '--method NAME --help' those of a method.

    Args:
        config: What to train.
        evaluation: How to probe it.
        options: What else to measure.
        execution: How to run it.
        domain: atari, environments, images, or package.module:Name. Implied by --game, --env and --dataset.
        preset: quick (minutes on two cores), standard (an hour or two; for images, on a GPU) or paper (the paper's
            setting). Other flags override single values of the preset.
        seeds: Seeds, one run each.
        runs_dir: Where runs are kept.
        data_dir: Where stores and datasets are kept.
    """
    shared = {name: getattr(evaluation, name) for name in find_domain(domain).shared_fields}
    plain = plain_config(replace(config, **shared))
    run_dirs = run_job(plain, evaluation, seeds, execution, runs_dir, data_dir, options, show=write_page)
    if not run_dirs:  # under torchrun, every process but the first
        return
    results = [RunResult.read(run_dir / "result.json") for run_dir in run_dirs]
    console = plain_console()
    console.print(job_table(results))
    console.print(setting_sentence(results[0]), highlight=False)
    for run_dir in run_dirs:
        print(f"page: {run_dir / 'report.html'}")


def run_for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`run` with the flags of the domain and the method, and the defaults of the preset, that the arguments name."""
    return _run_on(chosen_domain(arguments), arguments)


def _run_on(name: str, arguments: list[str]) -> Callable[..., None]:
    domain, preset = find_domain(name), chosen_preset(arguments, "quick")
    # The seeds belong to the job; what config and evaluation share belongs to the evaluation.
    config = default_config(name, arguments, preset, fixed=("seed", *domain.shared_fields))
    return with_types(
        run,
        config=config,
        evaluation=domain.preset_evaluation(preset),
        options=domain.options_type(),
        domain=(str, name),
        preset=(PresetName, preset),
    )


def images(**values: Any) -> None:
    """Run the whole job on images: another name for `manicap run --dataset DATASET`."""


def images_for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`run` on images, introduced by the first line of `images`."""
    call = _run_on(value_of("--domain", arguments) or "images", arguments)
    _, _, explanation = (run.__doc__ or "").partition("\n\n")
    call.__doc__ = f"{images.__doc__}\n\n{explanation}"
    return call


run.for_arguments = run_for_arguments  # type: ignore[attr-defined]
images.for_arguments = images_for_arguments  # type: ignore[attr-defined]


def evaluate(
    run: RunPath,
    config: EvaluationConfig,
    beside: Path | None = None,
    threads: Threads | None = None,
    data_dir: Path = DATA_DIR,
) -> None:
    """Probe the encoder of a finished run, as its own job did unless told otherwise.

    Each way of probing is measured once and kept in the run's directory.

    At the width that all methods share: manicap evaluate RUN --probe-input backbone

    With nearest neighbours: manicap evaluate RUN --probe knn

    Args:
        run: Directory of the run.
        config: How to probe it.
        beside: Another run to probe in the same way and show in its own column. A `supervised` run gives the ceiling.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        data_dir: Where stores and datasets are kept.
    """
    runs = (run,) if beside is None else (run, beside)
    require_runs(runs)
    for path in runs:  # before anything is collected or encoded
        check_job(read_run_config(path), [config], data_dir)
    evaluation = probe(run, config, data_dir, threads).evaluation
    if beside is not None:
        other = probe(beside, config, data_dir, threads)
        evaluation.add_floor(other.method, other.evaluation)
    for path in runs:
        remove_features(path)
    print(evaluation)


def evaluate_for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`evaluate` with the flags of what the run learned from, by default as its own job probed it."""
    found = run_dirs_in(arguments)
    domain = find_domain(read_run_config(found[0]).domain if found else "atari")
    usual = domain.evaluation_type()
    if found and has_result(found[0] / "result.json"):
        try:
            usual = RunResult.read(found[0] / "result.json").evaluation_config
        except UserError as error:  # its encoder may be sound
            print(f"{error}; how the run was probed is not known, and the defaults are used", file=sys.stderr)
    return with_types(evaluate, config=usual)


evaluate.for_arguments = evaluate_for_arguments  # type: ignore[attr-defined]
