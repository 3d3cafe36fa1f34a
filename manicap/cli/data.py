"""Commands for the data on disk: data list, verify, splits, convert, export, remove."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import tyro
from rich.table import Table

from manicap.atari.convert import convert_store
from manicap.atari.emulator import FRAME_SHAPE, RAM_SIZE
from manicap.atari.export import exportable_lives
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.store import FORMAT, Store, list_stores, remove_store
from manicap.cli.annotation_set import AnnotationSet
from manicap.cli.record import environment_lines
from manicap.cli.remote import stores_elsewhere
from manicap.core.errors import Failure, UserError, unknown_choice
from manicap.core.paths import DATA_DIR
from manicap.core.printing import in_columns, plain_console
from manicap.core.progress import Tracker
from manicap.core.ranges import Range, Seed
from manicap.core.remote import remote_of
from manicap.environments.export import exportable_episodes
from manicap.environments.integrity import open_environment_store, verify_environment_store
from manicap.environments.inventory import is_environment_store, list_environment_stores, remove_environment_store
from manicap.images.inventory import find_image_files, list_image_files
from manicap.play.export import FPS, Format, Wanted, export_episode
from manicap.play.protocol import PLAIN, ProtocolName, find_protocol
from manicap.play.splits import probe_splits
from manicap.play.store import PlayStore

StorePath = Annotated[
    Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the store, as 'data list' shows it.")
]

AnyStore = TypeVar("AnyStore")
ExportFormat = Annotated[str | None, tyro.conf.arg(metavar="mp4|gif|npz")]


def data_list(data_dir: Path = DATA_DIR) -> None:
    """List the data on disk: stores with their game or environment, size and configuration, and images.

    Exits with code 2 if any is damaged. Image folders outside data-dir are not listed. If data-dir is a URL, lists its
    local cache, then the stores that are only at the URL.

    Args:
        data_dir: Where stores and datasets are kept.
    """
    paths, images, elsewhere = list_stores(data_dir), list_image_files(data_dir), stores_elsewhere(data_dir)
    recorded_paths = list_environment_stores(data_dir)
    if not paths and not recorded_paths and not images and not elsewhere.lines:
        print(f"no stores and no images in {data_dir}; create a store with 'manicap collect --game pong'")
        return
    stores, recorded = _opened(paths, open_store), _opened(recorded_paths, open_environment_store)
    if stores:
        print(store_lines(stores))
    if recorded:
        print("\n" * bool(stores) + environment_lines(recorded))
    if old := sum(store.format != FORMAT for store in stores):
        print(f"{old} store{'s are' if old > 1 else ' is'} not compressed: 'manicap data convert'")
    if images:
        rows = [(str(files.path), files.kind, f"{files.num_bytes / 1e6:,.0f}") for files in images]
        print("\n" * bool(stores or recorded) + in_columns(("images", "dataset", "MB"), rows, numbers=("MB",)))
    if elsewhere.lines:
        print("\n" * bool(paths or recorded_paths or images) + elsewhere.lines)
    num_stores, num_sound = len(paths) + len(recorded_paths), len(stores) + len(recorded)
    if num_sound < num_stores:
        raise UserError(f"{num_stores - num_sound} of {num_stores} stores cannot be opened")
    if elsewhere.damage:
        raise UserError(elsewhere.damage)


def _opened(paths: list[Path], open_one: Callable[[Path], AnyStore]) -> list[AnyStore]:
    """Those that can be opened; what is wrong with the others is printed."""
    found = []
    for path in paths:
        try:
            found.append(open_one(path))
        except UserError as error:
            print(error)
    return found


def data_verify(paths: Annotated[tuple[Path, ...], tyro.conf.Positional] = (), data_dir: Path = DATA_DIR) -> None:
    """Hash the stores and images again and compare with the recorded hashes. Exit with code 2 if anything differs.

    Stores are compared with their manifests, images with the hashes taken when they were first read (for downloads:
    unpacked). If data-dir is a URL, what is checked is its local cache.

    An image folder outside data-dir: manicap data verify PATH

    Args:
        paths: Stores and image data to check; all in data-dir if omitted.
        data_dir: Where stores and datasets are kept.
    """
    stores = (*list_stores(data_dir), *list_environment_stores(data_dir))
    paths = paths or (*stores, *(files.path for files in list_image_files(data_dir)))
    if not paths:
        raise UserError(f"no stores and no images in {data_dir}")
    if missing := [path for path in paths if not path.exists()]:
        raise UserError(f"there is no {missing[0]}; 'manicap data list' shows what there is")
    damaged = 0
    with Tracker("verifying", len(paths), "directories") as tracker:
        for path in paths:
            faults = _verify(path)
            damaged += bool(faults)
            print(f"{path}: {'; '.join(faults) if faults else 'sound'}", flush=True)
            tracker.advance()
    if damaged:
        raise UserError(f"{damaged} of {len(paths)} are damaged")


def _verify(path: Path) -> list[str]:
    images = find_image_files(path)
    if images is None and (path / "train").is_dir():
        return ["these images were never used: there are no hashes to compare with"]
    if images is not None:
        return images.verify()
    return verify_environment_store(path) if is_environment_store(path) else verify_store(path)


def data_splits(
    path: StorePath,
    annotation_set: AnnotationSet = "corrected",
    protocol: ProtocolName = "fixed",
    seed: Seed = 0,
) -> None:
    """Show how a store is split for probing: what each filter drops, and which variables are kept.

    A store of an environment has one protocol, plain, and the variables that were recorded.

    Args:
        path: Directory of the store, as 'data list' shows it.
        annotation_set: Names and RAM addresses of a game's variables.
        protocol: Of games: 'fixed', or 'reference' for the 2019 code's behaviour.
        seed: Seed of the shuffle.
    """
    store: PlayStore
    if is_environment_store(path):
        store, rules, annotation_set = open_environment_store(path), PLAIN, "recorded"
    else:
        store, rules = open_store(path), find_protocol(protocol)
    splits = probe_splits(store, rules, annotation_set, seed)
    table = Table(title=f"{path}: protocol {rules.name}, annotations {annotation_set}, seed {seed}")
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, count in splits.counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    terminal = plain_console()
    terminal.print(table)
    dropped = [name for name in splits.entropies if name not in splits.variables]
    terminal.print(f"{len(splits.variables)} variables are kept: {', '.join(splits.variables)}")
    if dropped:
        terminal.print(f"{len(dropped)} variables are dropped: {', '.join(dropped)}")


def data_convert(paths: Annotated[tuple[Path, ...], tyro.conf.Positional] = (), data_dir: Path = DATA_DIR) -> None:
    """Compress stores of earlier versions. Exit with code 2 if any is damaged.

    Frames, RAM and lives stay the same, and so does every result. Each frame is compared before the old ones are
    deleted. An interrupted call leaves every store whole; rerun the command to finish. No other job may read the stores
    meanwhile.

    Args:
        paths: Stores to convert; all in data-dir if omitted.
        data_dir: Where stores are kept.
    """
    chosen = paths or tuple(list_stores(data_dir))
    if not chosen:
        print(f"no stores in {data_dir}")
        return
    converted, problems = 0, list[UserError | Failure]()
    for path in chosen:
        try:
            converted += _convert(path, say_if_done=bool(paths))
        except (UserError, Failure) as error:
            problems.append(error)
            print(error, flush=True)
    if converted:
        print("Converted stores have neither colour nor actions, which were not recorded: to have these, collect anew.")
    elif not problems and not paths:
        print(f"nothing to convert: every store in {data_dir} is compressed")
    if problems:
        kind = UserError if any(isinstance(error, UserError) for error in problems) else Failure
        raise kind(f"{len(problems)} of {len(chosen)} stores cannot be converted")


def _convert(path: Path, say_if_done: bool) -> bool:
    old = open_store(path)
    size = _megabytes(_num_bytes(old))
    new = convert_store(path)  # also removes what a killed conversion left
    if old.format == FORMAT:
        if say_if_done:
            print(f"{path}: is already compressed", flush=True)
        return False
    print(f"{path}: {size} MB -> {_megabytes(_num_bytes(new))} MB ({_ratio(new)})", flush=True)
    return True


def data_export(
    path: StorePath,
    episode: Annotated[int, Range(0, 10**9)] | None = None,
    format: ExportFormat = None,
    out: Path | None = None,
    colour: bool = False,
    no_colour: bool = False,
    scale: Annotated[int, Range(1, 16)] = 2,
    fps: Annotated[float, Range(1, 120)] = FPS,
    force: bool = False,
) -> None:
    """Write one life of a game, or one episode of an environment, as a film or as arrays for other programs.

    In colour if the store has it. An npz file holds frames, actions, rewards and state variables, and the RAM of a
    game. An npz file of an environment can be imported again: manicap record --env NAME --from FILE

    Args:
        path: Directory of the store, as 'data list' shows it.
        episode: Number of the life or episode, from 0; the longest if omitted.
        format: mp4, gif or npz; if omitted, the ending of --out, or mp4.
        out: File to write; <game>-life-<number>.<format> or <env>-episode-<number>.<format> here if omitted.
        colour: Refuse a store without colour.
        no_colour: Gray frames.
        scale: Films only: height of a pixel; its width is the same, or twice that for a game. Even numbers are best.
        fps: Films only: frames per second; a game was played at 15.
        force: Replace an existing file.
    """
    if colour and no_colour:
        raise UserError("give only one of --colour and --no-colour")
    kind = _format(format, out)
    in_colour = True if colour else False if no_colour else None
    recorded = is_environment_store(path)
    source = exportable_episodes(open_environment_store(path)) if recorded else exportable_lives(open_store(path))
    print(export_episode(source, Wanted(kind, episode, out, in_colour, scale, fps, force)))


def _format(named: str | None, out: Path | None) -> Format:
    ending = out.suffix[1:].lower() if out is not None else ""
    formats: dict[str, Format] = {name: name for name in get_args(Format)}
    if named is None and ending and ending not in formats:
        raise UserError(f"{out} should end in {', '.join(f'.{name}' for name in formats)}, or give --format")
    chosen = named or ending or "mp4"
    if chosen not in formats:
        raise unknown_choice("format", chosen, formats)
    if ending in formats and ending != chosen:
        raise UserError(f"{out} ends like a file of format {ending}, but --format is {chosen}")
    return formats[chosen]


def data_remove(path: StorePath) -> None:
    """Delete a store. If it is also at a URL, only the local copy is deleted.

    Args:
        path: Directory of the store, as 'data list' shows it.
    """
    origin = remote_of(path)
    (remove_environment_store if is_environment_store(path) else remove_store)(path)
    print(f"removed {path}" + (f"; {origin.url} is still there" if origin else ""))


def store_lines(stores: list[Store]) -> str:
    """One line per store, with its full path."""
    head = ("store", "game", "frames", "lives", "MB", "ratio", "purpose", "seed", "policy")
    rows = []
    for store in stores:
        config, size = store.config, _megabytes(_num_bytes(store))
        counts = (f"{len(store):,}", f"{len(store.episodes):,}", size, _ratio(store))
        rows.append((str(store.path), config.game, *counts, config.purpose, str(config.seed), config.policy))
    return in_columns(head, rows, numbers=("frames", "lives", "MB", "ratio", "seed"))


def _num_bytes(store: Store) -> int:
    return sum(entry["bytes"] for entry in store.manifest["files"].values())


def _ratio(store: Store) -> str:
    """How many times smaller the store is than its gray frames and RAM as arrays."""
    return f"{len(store) * (math.prod(FRAME_SHAPE) + RAM_SIZE) / _num_bytes(store):,.0f} x"


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.{0 if num_bytes >= 1e7 else 1}f}"
