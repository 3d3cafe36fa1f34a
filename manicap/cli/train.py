"""Commands of the training stage: pretrain, resume, methods."""

from collections.abc import Callable, Sequence
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import RunName
from manicap.evaluate.diagnostics.training import measure_batch
from manicap.methods import METHODS
from manicap.methods.base import PresetName
from manicap.train.config import PretrainConfig, plain_config, preset_config, read_run_config, typed_config
from manicap.train.image_config import ImageConfig
from manicap.train.loop import pretrain as train_run
from manicap.train.run_config import RunConfig
from manicap.train.setup import Execution

RunPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the run.")]
PRESETS: tuple[PresetName, ...] = ("quick", "standard", "paper")


def pretrain(
    config: PretrainConfig,
    execution: Execution,
    preset: PresetName = "standard",
    name: RunName | None = None,
    runs_dir: Path = RUNS_DIR,
    data_dir: Path = DATA_DIR,
) -> None:
    """Train an encoder without labels.

    Collects the game if it is not on disk yet, trains, and leaves the encoder in the run's directory. Stop it at any
    moment, by Ctrl-C or otherwise: the same call goes on where it was and ends with the same bytes.

    A quick run: manicap pretrain --game pong --method dim-c+ --preset quick

    Flags of another method: manicap pretrain --method st-dim --help

    Two processes: torchrun --nproc-per-node 2 -m manicap pretrain --game pong

    Args:
        config: What to train.
        execution: How to run it.
        preset: quick (minutes on two cores), standard (an hour or two), paper (Tables 3 and 4 of
            arXiv 2405.13848). Other flags change single values of it.
        name: Directory of the run under runs-dir; made from the config if absent.
        runs_dir: Where runs live.
        data_dir: Where stores live.
    """
    plain = plain_config(config)
    run_dir = runs_dir / (name or plain.run_name)
    finish_run(plain, run_dir, execution, data_dir)


def for_arguments(arguments: Sequence[str]) -> Callable[..., None]:
    """`pretrain` with the flags of the method and the defaults of the preset that the arguments name."""
    preset = chosen_preset(arguments, "standard")
    default = preset_default(value_of("--method", arguments) or PretrainConfig.method, preset)
    config_type = type(default)

    def specialised(
        config: config_type = default,  # type: ignore[valid-type]
        execution: Execution = Execution(),  # noqa: B008 - frozen
        preset: PresetName = preset,
        name: RunName | None = None,
        runs_dir: Path = RUNS_DIR,
        data_dir: Path = DATA_DIR,
    ) -> None:
        pretrain(config, execution, preset, name, runs_dir, data_dir)

    specialised.__doc__ = pretrain.__doc__
    return specialised


def chosen_preset(arguments: Sequence[str], default: PresetName) -> PresetName:
    """The preset that the arguments name; of a wrong one the parser will complain."""
    found: Any = value_of("--preset", arguments)
    return found if found in PRESETS else default


def preset_default(method: str, preset: PresetName, fixed: Sequence[str] = ()) -> RunConfig:
    """The preset's values as the parser's defaults, with the game still to be given."""
    default = parser_default(preset_config(preset, "pong", method), fixed)
    object.__setattr__(default, "game", tyro.MISSING)
    return default


def parser_default(config: RunConfig, fixed: Sequence[str] = ()) -> RunConfig:
    """The config with its method's flags, for the parser to change; `fixed` fields have no flag."""
    config_type = typed_config(config.method)
    if fixed:
        hints = [(field.name, field.type, field.default) for field in fields(config_type) if field.name in fixed]
        hidden = [(name, Annotated[hint, tyro.conf.Fixed], default) for name, hint, default in hints]
        config_type = make_dataclass(config_type.__name__, hidden, bases=(config_type,), frozen=True, kw_only=True)
    default = object.__new__(config_type)  # not the constructor, which would look up a game that is to be given
    for field in fields(config_type):
        object.__setattr__(default, field.name, getattr(config, field.name))
    return default


def resume(run: RunPath, execution: Execution, data_dir: Path = DATA_DIR) -> None:
    """Go on with an interrupted run. Its directory is all that is needed; a finished run answers at once.

    Logs and diagnoses as often as the run was begun with, unless told otherwise.

    Args:
        run: Directory of the run.
        execution: How to run it.
        data_dir: Where stores live.
    """
    if not run.is_dir():
        raise UserError(f"there is no run at {run}")
    finish_run(read_run_config(run / "config.toml"), run, execution, data_dir)


def finish_run(config: RunConfig, run_dir: Path, execution: Execution, data_dir: Path) -> None:
    was_finished = (run_dir / "encoder.json").is_file()
    if isinstance(config, ImageConfig):
        from manicap.bench.image_run import train_images  # with its checks

        train_images(config, run_dir, execution, data_dir)
    else:
        train_run(config, run_dir, execution, data_dir, observe=measure_batch)
    state = "was finished before" if was_finished else "is finished"
    forced = " (--force resumes a run and never changes a finished one)" if was_finished and execution.force else ""
    print(f"{run_dir} {state}{forced}: its encoder is encoder.safetensors")


def methods() -> None:
    """Show the methods: what each is, and what it learns from."""
    table = Table()
    table.add_column("method", no_wrap=True)
    table.add_column("learns from", no_wrap=True)
    table.add_column("what it is")
    for name, method in METHODS.items():
        table.add_row(name, method.domain, (method.__doc__ or "").strip().splitlines()[0])
    plain_console().print(table)


def value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """Value of `--flag value` or `--flag=value`."""
    for index, word in enumerate(arguments):
        if word == flag and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith(flag + "="):
            return word.removeprefix(flag + "=")
    return None


pretrain.for_arguments = for_arguments  # type: ignore[attr-defined]
