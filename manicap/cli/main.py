"""`manicap COMMAND ...`: find the command, parse its flags with tyro, turn errors into one sentence and an exit code.

Exit codes: 0 done, 1 something failed, 2 a mistake in the call or its input, 130 Ctrl-C, 143 SIGTERM.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import tyro
from rich.console import Console
from rich.table import Table

from manicap import __version__
from manicap.core.config import check_arguments
from manicap.core.errors import Failure, Interruption, UserError, unknown_choice
from manicap.core.ranges import shown
from manicap.core.reading import reason
from manicap.core.registry import allow_plugins, is_plugin
from manicap.core.remote import local_directory
from manicap.core.signals import stopped_by_sigterm
from manicap.core.terminal import never_fail_to_print

HELP = ("-h", "--help", "help")
OUT_OF_MEMORY = "out of memory; use smaller settings (units, num-heads, batch-size, steps) or a larger machine"


@dataclass(frozen=True)
class Command:
    function: str
    """module:name, loaded only when the command is called."""
    summary: str

    def load(self) -> Callable[..., None]:
        module, name = self.function.split(":")
        loaded: Callable[..., None] = getattr(import_module(module), name)
        return loaded


COMMANDS: dict[str, Command] = {
    "run": Command("manicap.cli.run:run", "Run the whole job: collect, train, probe, show."),
    "images": Command("manicap.cli.run:images", "Run the whole job on images (same as `run --dataset`)."),
    "compare": Command("manicap.cli.compare:compare", "Compare runs probed in the same way, with intervals."),
    "bench plan": Command("manicap.cli.bench:plan", "Show the runs of a grid, what is left, and the hours it takes."),
    "bench run": Command("manicap.cli.bench:run", "Finish a grid on this machine or a cluster, and report it."),
    "bench search": Command("manicap.cli.bench:search", "Find the best column of a grid by successive halving."),
    "bench status": Command("manicap.cli.bench:status", "Show the state of each run of a grid."),
    "report": Command("manicap.cli.bench:report", "Write the tables, figures and page of a grid."),
    "record": Command("manicap.cli.record:record", "Record an environment, or frames recorded elsewhere, as a store."),
    "collect": Command("manicap.cli.atari:collect", "Play a game and store its frames and RAM."),
    "pretrain": Command("manicap.cli.train:pretrain", "Train an encoder without labels."),
    "resume": Command("manicap.cli.train:resume", "Resume an interrupted run."),
    "evaluate": Command("manicap.cli.run:evaluate", "Probe the encoder of a finished run."),
    "export": Command("manicap.cli.export:export", "Write an encoder as ONNX or torch.export, checked against torch."),
    "diagnose": Command("manicap.cli.diagnose:diagnose", "Measure rank, heads and capacity of runs; warn of collapse."),
    "nerve": Command("manicap.cli.nerve:nerve", "Draw an atlas and its Čech nerve; count its holes."),
    "methods": Command("manicap.cli.train:methods", "List the methods."),
    "data list": Command("manicap.cli.data:data_list", "List the stores and images on disk."),
    "data verify": Command("manicap.cli.data:data_verify", "Check every byte of the data against its hashes."),
    "data splits": Command("manicap.cli.data:data_splits", "Show how a store is split, and what each filter drops."),
    "data convert": Command("manicap.cli.data:data_convert", "Compress stores of earlier versions."),
    "data export": Command("manicap.cli.data:data_export", "Write one life or episode as a film or as arrays."),
    "data remove": Command("manicap.cli.data:data_remove", "Delete a store."),
    "data pull": Command("manicap.cli.remote:data_pull", "Download stores from a remote data directory."),
    "data push": Command("manicap.cli.remote:data_push", "Upload stores to a remote data directory."),
    "annotations list": Command("manicap.cli.atari:annotations_list", "List the state variables of the games."),
    "annotations verify": Command("manicap.cli.atari:annotations_verify", "Play a game and test its annotations."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `manicap` command and of `python -m manicap`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    never_fail_to_print()
    try:
        with stopped_by_sigterm():
            try:
                run(words)
            finally:
                sys.stdout.flush()
    except UserError as error:
        _fail(str(error), 2)
    except Failure as error:
        _fail(str(error), 1)
    except Interruption as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted; rerun the command to resume", 130)
    except BrokenPipeError:
        _silence_stdout()  # `manicap ... | head`: the reader is gone
        sys.exit(1)
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:  # it is stdout itself that cannot be written
            _silence_stdout()
        _fail(_system_error(error), 1)
    except MemoryError:
        _fail(OUT_OF_MEMORY, 1)
    except RecursionError:
        _fail("an input is nested too deeply", 2)
    except UnicodeError as error:
        _fail(f"a name or an input cannot be encoded as UTF-8: {reason(error)}", 2)
    except Exception as error:
        if _is_out_of_memory(error):
            _fail(OUT_OF_MEMORY, 1)
        print(f"manicap {__version__}: this is a bug in manicap; please report it with the following:", file=sys.stderr)
        raise


def run(words: Sequence[str]) -> None:
    if words and words[0] in ("--version", "-V"):
        print(f"manicap {__version__}")
        return
    name = _command_name(words)
    if name is None:
        group = words[0] if words and words[0] not in HELP else ""
        _print_overview(group)
        if group and len(words) == 1:
            raise UserError(f"use one of: {', '.join(key for key in COMMANDS if key.startswith(group + ' '))}")
        return
    arguments = _named_plugins(words[len(name.split()) :])
    function = COMMANDS[name].load()
    if hasattr(function, "for_arguments"):  # flags that depend on other flags, such as a method's own
        function = function.for_arguments(arguments)
    call = _parse(function, f"manicap {name}", arguments)
    check_arguments(function, call.keywords)
    if "data_dir" in call.keywords:  # commands and all that they call see a path, even if it was named by a URL
        call = partial(call, data_dir=local_directory(call.keywords["data_dir"]))
    call()


def _named_plugins(words: Sequence[str]) -> list[str]:
    """The words without `--plugin NAME`. What the caller names, there or as a method or domain, may be imported."""
    left: list[str] = []
    named: list[str] = []
    index = 0
    while index < len(words):
        word, following = words[index], words[index + 1 : index + 2]
        if word == "--plugin" or word.startswith("--plugin="):
            plugins = word.removeprefix("--plugin=").split() if "=" in word else following
            if not plugins or not all(map(is_plugin, plugins)):
                given = repr(" ".join(plugins)) if plugins else "nothing"
                raise UserError(f"--plugin must be followed by package.module:Name, got {given}")
            named += plugins
            index += 1 if "=" in word else 2
            continue
        flag, _, value = word.partition("=")
        if flag in ("--method", "--domain", "--probe", "--encoder", "--regularizer", "--env", "--labels", "--policy"):
            named += [value] if value else following
        left.append(word)
        index += 1
    allow_plugins(named)
    if any(map(is_plugin, named)) and (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # a module in this directory can be named; last, so that it hides no package
    return left


def _parse(function: Callable[..., None], program: str, arguments: list[str]) -> "partial[None]":
    """The call that the arguments ask for. The parser itself prints help and its own errors."""

    @wraps(function)
    def bind(**values: Any) -> Any:
        return partial(function, **values)

    def parse() -> Any:
        style = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff, tyro.conf.SuppressFixed)
        return tyro.cli(bind, prog=program, args=arguments, config=style)

    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return parse()
    except SystemExit as stop:
        # An error raised while a config is built is printed as our one sentence, not in the parser's box.
        behind: BaseException | None = stop
        while behind is not None and not isinstance(behind, UserError):
            behind = behind.__context__
        if behind is not None:
            raise behind from None
    return parse()


def _command_name(words: Sequence[str]) -> str | None:
    """The command that `words` begin with; None asks for the overview (of a group, if one is named)."""
    if not words or words[0] in HELP:
        return None
    for length in (2, 1):
        if " ".join(words[:length]) in COMMANDS:
            return " ".join(words[:length])
    groups = {name.split()[0] for name in COMMANDS if " " in name}
    if words[0] not in groups:
        raise unknown_choice("command", words[0], {name.split()[0] for name in COMMANDS})
    if len(words) == 1 or words[1] in ("-h", "--help"):
        return None
    raise unknown_choice("command", " ".join(words[:2]), [name for name in COMMANDS if name.startswith(words[0] + " ")])


def _print_overview(group: str) -> None:
    console = Console()
    console.print("manicap: learn state representations without labels, and measure them honestly.\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, command in COMMANDS.items():
        if name.startswith(group):
            table.add_row(f"[bold]manicap {name}[/bold]", command.summary)
    console.print(table)
    console.print(
        "\n'manicap COMMAND --help' explains the flags of a command. '--plugin package.module:Name' lets a command use"
        " code from another package. 'manicap --version' prints the version."
    )


def _system_error(error: OSError) -> str:
    """`No space left on device: runs/a/config.toml`; an error without a number comes from a library, in its words."""
    if error.errno is None:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    names = [
        shown(Path(os.fsdecode(name))) for name in (error.filename, error.filename2) if not isinstance(name, int | None)
    ]
    sentence = f"{error.strerror or type(error).__name__}{': ' if names else ''}{' -> '.join(names)}"
    return f"{sentence}; free some space and rerun to resume" if error.errno == errno.ENOSPC else sentence


def _is_out_of_memory(error: Exception) -> bool:
    """torch raises a RuntimeError; only its message, or its name on a GPU, distinguishes it from others."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def _silence_stdout() -> None:
    """Keep Python from complaining when it flushes at exit."""
    with suppress(OSError, ValueError):  # a stdout without a file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(sentence: str, code: int) -> NoReturn:
    # A name may contain a line break or an escape sequence: keep the sentence on one line and the terminal unharmed.
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence)
    with suppress(BrokenPipeError):
        print(f"manicap: {line}", file=sys.stderr)
    sys.exit(code)
