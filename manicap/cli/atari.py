"""Commands of the first stage: collect, data, annotations."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from manicap.atari.annotations import ANNOTATION_SETS, annotations, sets_with
from manicap.atari.collect import collect as collect_store
from manicap.atari.games import GAMES, Game, find_game
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.protocol import FIXED, ProtocolName, find_protocol
from manicap.atari.splits import probe_splits
from manicap.atari.store import Store, StoreConfig, list_stores, remove_store
from manicap.atari.verify import VariableReport, verify_game
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.progress import Tracker
from manicap.core.ranges import Count, Seed, Threads

AnnotationSet = Annotated[str, tyro.conf.arg(help=f"Annotation set: {', '.join(ANNOTATION_SETS)}.", metavar="SET")]
OptionalGame = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(help="Game; all of them if absent.")]
StorePath = Annotated[
    Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the store, as 'data list' shows it.")
]


def collect(config: StoreConfig, data_dir: Path = DATA_DIR, workers: Threads | None = None) -> None:
    """Play a game and store its frames and RAM.

    8 lanes (by default) are played in parallel processes, as the AtariARI benchmark prescribes: 1 to 30 no-op frames
    at the start, 4 raw frames a step, no sticky actions, a life is an episode, random actions. The same call always
    gives the same bytes, and a store that is already there is opened at once.

    Example: manicap collect --game pong --steps 100000

    Args:
        config: What to collect.
        data_dir: Where stores live.
        workers: Processes at a time; all cores if absent.
    """
    store = collect_store(config, data_dir, workers)
    _print_store_table([store])


def data_list(data_dir: Path = DATA_DIR) -> None:
    """Show the stores on disk, with their game, size and configuration.

    Args:
        data_dir: Where stores live.
    """
    paths = list_stores(data_dir)
    if not paths:
        print(f"no stores in {data_dir}; make one with 'manicap collect --game pong'")
        return
    stores: list[Store] = []
    for path in paths:
        try:
            stores.append(open_store(path))
        except UserError as error:
            print(error)
    _print_store_table(stores)


def data_verify(paths: Annotated[tuple[Path, ...], tyro.conf.Positional] = (), data_dir: Path = DATA_DIR) -> None:
    """Hash every file of the stores again and compare with their manifests. Exit code 2 if any differs.

    Args:
        paths: Stores to check; all of them if absent.
        data_dir: Where stores live.
    """
    paths = paths or tuple(list_stores(data_dir))
    if not paths:
        raise UserError(f"no stores in {data_dir}")
    damaged = 0
    with Tracker("verifying", len(paths), "stores") as tracker:
        for path in paths:
            faults = verify_store(path)
            damaged += bool(faults)
            print(f"{path}: {'; '.join(faults) if faults else 'sound'}", flush=True)
            tracker.advance()
    if damaged:
        raise UserError(f"{damaged} of {len(paths)} stores are damaged")


def data_splits(
    path: StorePath,
    annotation_set: AnnotationSet = "corrected",
    protocol: ProtocolName = "fixed",
    seed: Seed = 0,
) -> None:
    """Show how a store splits for probing: what each filter drops, and the variables that stay.

    Args:
        path: Directory of the store, as 'data list' shows it.
        annotation_set: Names of the variables and where they are in RAM.
        protocol: 'fixed', or 'reference' for the 2019 code's behaviour.
        seed: Seed of the shuffle.
    """
    splits = probe_splits(open_store(path), find_protocol(protocol), annotation_set, seed)
    table = Table(title=f"{path}: protocol {protocol}, annotations {annotation_set}, seed {seed}")
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, count in splits.counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    console = Console()
    console.print(table)
    dropped = [name for name in splits.entropies if name not in splits.variables]
    console.print(f"{len(splits.variables)} variables stay: {', '.join(splits.variables)}", highlight=False)
    if dropped:
        console.print(f"{len(dropped)} variables are dropped: {', '.join(dropped)}", highlight=False)


def data_remove(path: StorePath) -> None:
    """Delete a store.

    Args:
        path: Directory of the store, as 'data list' shows it.
    """
    remove_store(path)
    print(f"removed {path}")


def annotations_list(game: OptionalGame = None, annotation_set: AnnotationSet = "corrected") -> None:
    """Show the state variables of a game (address, categories, what was mended and why), or count those of all games.

    Args:
        game: Game; all of them if absent.
        annotation_set: ari-2019 (behind the published tables), ari-2020 (last of the 2019 code), corrected.
    """
    console = Console()
    if game is not None:
        console.print(_variable_table(find_game(game), annotation_set))
        return
    table = Table(title="State variables a game (- where a set has no such game)")
    table.add_column("game")
    for name in ANNOTATION_SETS:
        table.add_column(name, justify="right")
    table.add_column("paper's 19")
    table.add_column("ST-DIM's 22")
    for entry in GAMES.values():
        counts = [str(len(annotations(entry, name))) if name in sets_with(entry) else "-" for name in ANNOTATION_SETS]
        table.add_row(entry.name, *counts, "yes" if entry.in_paper else "", "yes" if entry.in_stdim else "")
    console.print(table)


def annotations_verify(
    game: OptionalGame = None, annotation_set: AnnotationSet = "corrected", steps: Count = 1000, seed: Seed = 0
) -> None:
    """Play a game and report per variable whether it varies, its entropy, and whether writing it changes the screen.

    Args:
        game: Game; all of them if absent.
        annotation_set: ari-2019, ari-2020 or corrected.
        steps: Random steps to play.
        seed: Seed of the play.
    """
    if game is not None:
        games = [find_game(game)]
    else:
        games = [entry for entry in GAMES.values() if annotation_set in sets_with(entry)]
    for entry in games:
        reports = verify_game(entry, annotation_set, steps=steps, seed=seed)
        Console().print(_report_table(f"{entry.title}, {annotation_set}, {steps} random steps, seed {seed}", reports))


def _print_store_table(stores: list[Store]) -> None:
    table = Table()
    for name, justify in (("store", "left"), ("game", "left"), ("frames", "right"), ("lives", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    table.add_column("MB", justify="right")
    table.add_column("purpose")
    table.add_column("seed", justify="right")
    table.add_column("policy")
    for store in stores:
        size = sum(entry["bytes"] for entry in store.manifest["files"].values())
        config = store.config
        table.add_row(
            str(store.path),
            config.game,
            f"{len(store):,}",
            f"{len(store.episodes):,}",
            f"{size / 1e6:,.0f}",
            config.purpose,
            str(config.seed),
            config.policy,
        )
    Console().print(table)


def _variable_table(game: Game, annotation_set: str) -> Table:
    table = Table(title=f"{game.title}, {annotation_set}", show_lines=False)
    for name in ("variable", "RAM", "category", "why it differs from ari-2020"):
        table.add_column(name, overflow="fold")
    for variable in annotations(game, annotation_set):
        addresses = ", ".join(map(str, variable.addresses))
        category = ", ".join(variable.categories) or "(none)"
        table.add_row(variable.name, addresses, category, variable.why)
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
