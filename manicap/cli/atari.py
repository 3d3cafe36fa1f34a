"""Commands of the first stage: collect, annotations."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from manicap.atari.annotations import ANNOTATION_SETS, annotations, kind_of, sets_with, why_name
from manicap.atari.collect import collect as collect_store
from manicap.atari.games import GAMES, Game, find_game
from manicap.atari.store import StoreConfig
from manicap.atari.verify import VariableReport, verify_game
from manicap.cli.annotation_set import AnnotationSet
from manicap.cli.data import store_lines
from manicap.cli.remote import require_uploaded
from manicap.core.errors import unknown_choice
from manicap.core.paths import DATA_DIR
from manicap.core.printing import plain_console
from manicap.core.ranges import Range, Seed, Threads
from manicap.play.protocol import FIXED

OptionalGame = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(help="Game; all games if omitted.")]
TestedSteps = Annotated[int, Range(10, 10**9)]
"""At least 10: values are written at ten moments of the play."""


def collect(config: StoreConfig, data_dir: Path = DATA_DIR, workers: Threads | None = None) -> None:
    """Play a game and store its frames and RAM.

    Plays 8 lanes (by default) in parallel processes, as the AtariARI benchmark prescribes: 1 to 30 no-op frames at the
    start, 4 raw frames per step, no sticky actions, one episode per life, random actions. The same command always
    produces bit-identical data; a store that already exists is simply opened.

    With a URL as data-dir the store is downloaded if it is there, and uploaded otherwise. Exits with code 1 if it could
    not be uploaded.

    Example: manicap collect --game pong --steps 100000

    Args:
        config: What to collect.
        data_dir: Where stores are kept: a directory, or a URL such as s3://bucket/manicap.
        workers: Number of parallel processes; all cores if omitted.
    """
    store = collect_store(config, data_dir, workers)
    print(store_lines([store]))
    require_uploaded(store, data_dir)


def annotations_list(game: OptionalGame = None, annotation_set: AnnotationSet = "corrected") -> None:
    """List a game's state variables (address, kind, categories, what was corrected and why), or count them per game.

    Args:
        game: Game; all games if omitted.
        annotation_set: ari-2019 (used for the published tables), ari-2020 (last of the 2019 code), corrected.
    """
    _require_set(annotation_set)
    terminal = plain_console()
    if game is not None:
        terminal.print(_variable_table(find_game(game), annotation_set))
        return
    table = Table(title="State variables per game (-: the set does not include the game)")
    table.add_column("game")
    for name in ANNOTATION_SETS:
        table.add_column(name, justify="right")
    table.add_column("paper's 19")
    table.add_column("ST-DIM's 22")
    for entry in GAMES.values():
        counts = [str(len(annotations(entry, name))) if name in sets_with(entry) else "-" for name in ANNOTATION_SETS]
        table.add_row(entry.name, *counts, "yes" if entry.in_paper else "", "yes" if entry.in_stdim else "")
    terminal.print(table)


def annotations_verify(
    game: OptionalGame = None, annotation_set: AnnotationSet = "corrected", steps: TestedSteps = 1000, seed: Seed = 0
) -> None:
    """Play a game and report, per variable, whether it varies, its entropy, and whether writing it changes the screen.

    Args:
        game: Game; all games if omitted.
        annotation_set: ari-2019, ari-2020 or corrected.
        steps: Number of random steps to play.
        seed: Random seed of the play.
    """
    _require_set(annotation_set)
    if game is not None:
        games = [find_game(game)]
    else:
        games = [entry for entry in GAMES.values() if annotation_set in sets_with(entry)]
    for entry in games:
        reports = verify_game(entry, annotation_set, steps=steps, seed=seed)
        plain_console().print(
            _report_table(f"{entry.title}, {annotation_set}, {steps} random steps, seed {seed}", reports)
        )


def _require_set(name: str) -> None:
    if name not in ANNOTATION_SETS:
        raise unknown_choice("annotation set", name, ANNOTATION_SETS)


def _variable_table(game: Game, annotation_set: str) -> Table:
    table = Table(title=f"{game.title}, {annotation_set}", show_lines=False)
    for name in ("variable", "RAM", "kind", "category", "why it is a name, or differs from ari-2020"):
        table.add_column(name, overflow="fold")
    for variable in annotations(game, annotation_set):
        addresses = ", ".join(map(str, variable.addresses))
        category = ", ".join(variable.categories) or "(none)"
        why = why_name(game.name, variable.name)
        kind = "name" if why else kind_of(game.name, variable)
        notes = "; ".join(filter(None, (why, variable.why)))
        table.add_row(variable.name, addresses, kind, category.replace("_", " "), notes)
    return table


def _report_table(title: str, reports: list[VariableReport]) -> Table:
    table = Table(title=title, caption="written: share of writes of another value that changed the screen, and pixels")
    table.add_column("variable")
    table.add_column("RAM")
    for name in ("values", "entropy (nats)", "written", "pixels"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for report in reports:
        verdict = [] if report.varies else ["constant"]
        verdict += ["under 0.6 nats"] if report.varies and report.entropy < FIXED.min_entropy else []
        verdict += [] if report.changed_fraction else ["writing it shows nothing"]
        table.add_row(
            report.variable.name,
            ", ".join(map(str, report.variable.addresses)),
            str(report.num_values),
            f"{report.entropy:.2f}",
            f"{report.changed_fraction:.0%}",
            f"{report.changed_pixels:.0f}",
            ", ".join(verdict) or "good",
        )
    return table
