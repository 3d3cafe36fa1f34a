"""Commands of the training stage: pretrain, resume, methods."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from manicap.algorithms import METHODS
from manicap.algorithms.base import PresetName
from manicap.cli.signature import chosen_domain, chosen_preset, default_config, with_types
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import RunName
from manicap.diagnostics.training import measure_batch
from manicap.domains.run_config import RunConfig, plain_config
from manicap.train.config_file import read_run_config
from manicap.train.loop import pretrain as train_run
from manicap.train.setup import Execution

RunPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the run.")]


def pretrain(
    config: RunConfig,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    domain: str = "atari",
    preset: PresetName = "standard",
    name: RunName | None = None,
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Train an encoder without labels.

    Collects or records the data if they are not on disk yet, trains, and saves the encoder in the run's directory. Stop
    at any time, with Ctrl-C or otherwise. Rerun the command to resume; the result is bit-identical to an uninterrupted
    run.

    A quick run: manicap pretrain --game pong --method dim-c+ --preset quick

    Flags of another method: manicap pretrain --method st-dim --help

    Two processes: torchrun --nproc-per-node 2 -m manicap pretrain --game pong

    Args:
        config: What to train.
        execution: How to run it.
        domain: atari, environments, images, or package.module:Name. Implied by --game, --env and --dataset.
        preset: quick (minutes on two cores), standard (an hour or two; for images, on a GPU) or paper (the paper's
            setting). Other flags override single values of the preset.
        name: Directory of the run under runs-dir; derived from the config if omitted.
        runs_dir: Where runs are kept.
        data_dir: Where stores and datasets are kept.
    """
    plain = plain_config(config)
    run_dir = runs_dir / (name or plain.run_name)
    finish_run(plain, run_dir, execution, data_dir)


def for_arguments(arguments: list[str]) -> Callable[..., None]:
    """`pretrain` with the flags of the domain and method, and the defaults of the preset, that the arguments name."""
    name, preset = chosen_domain(arguments), chosen_preset(arguments, "standard")
    config = default_config(name, arguments, preset)
    return with_types(pretrain, config=config, domain=(str, name), preset=(PresetName, preset))


pretrain.for_arguments = for_arguments  # type: ignore[attr-defined]


def resume(run: RunPath, execution: Execution, data_dir: Path = DATA_DIR) -> None:
    """Resume an interrupted run. Only its directory is needed; a finished run returns at once.

    The intervals of logging and diagnostics are those the run was started with, unless set here.

    Args:
        run: Directory of the run.
        execution: How to run it.
        data_dir: Where stores and datasets are kept.
    """
    if not run.is_dir():
        raise UserError(f"no run at {run}")
    finish_run(read_run_config(run), run, execution, data_dir)


def finish_run(config: RunConfig, run_dir: Path, execution: Execution, data_dir: Path) -> None:
    was_finished = (run_dir / "encoder.json").is_file()
    train_run(config, run_dir, execution, data_dir, observe=measure_batch)
    state = "was already finished" if was_finished else "is finished"
    forced = " (--force resumes a run and never changes a finished one)" if was_finished and execution.force else ""
    print(f"{run_dir} {state}{forced}: its encoder is encoder.safetensors")


def methods() -> None:
    """List the methods: what each one is, and what it learns from."""
    table = Table()
    table.add_column("method", no_wrap=True)
    table.add_column("learns from", no_wrap=True)
    table.add_column("what it is")
    for name, method in METHODS.items():
        table.add_row(name, method.kind, (method.__doc__ or "").strip().splitlines()[0])
    plain_console().print(table)
