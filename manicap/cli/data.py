"""Commands for the data on disk: data list, verify, splits, remove."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from manicap.atari.integrity import open_store, verify_store
from manicap.atari.protocol import ProtocolName, find_protocol
from manicap.atari.splits import probe_splits
from manicap.atari.store import Store, list_stores, remove_store
from manicap.cli.annotation_set import AnnotationSet
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.printing import in_columns, plain_console
from manicap.core.progress import Tracker
from manicap.core.ranges import Seed
from manicap.images.inventory import find_image_files, list_image_files

StorePath = Annotated[
    Path, tyro.conf.Positional, tyro.conf.arg(help="Directory of the store, as 'data list' shows it.")
]


def data_list(data_dir: Path = DATA_DIR) -> None:
    """List the data on disk: stores with their game, size and configuration, and images.

    Exits with code 2 if any is damaged. Image folders outside data-dir are not listed.

    Args:
        data_dir: Where stores and datasets are kept.
    """
    paths, images = list_stores(data_dir), list_image_files(data_dir)
    if not paths and not images:
        print(f"no stores and no images in {data_dir}; create a store with 'manicap collect --game pong'")
        return
    stores: list[Store] = []
    for path in paths:
        try:
            stores.append(open_store(path))
        except UserError as error:
            print(error)
    if stores:
        print(store_lines(stores))
    if images:
        rows = [(str(files.path), files.kind, f"{files.num_bytes / 1e6:,.0f}") for files in images]
        print("\n" * bool(stores) + in_columns(("images", "dataset", "MB"), rows, numbers=("MB",)))
    if len(stores) < len(paths):
        raise UserError(f"{len(paths) - len(stores)} of {len(paths)} stores cannot be opened")


def data_verify(paths: Annotated[tuple[Path, ...], tyro.conf.Positional] = (), data_dir: Path = DATA_DIR) -> None:
    """Hash the stores and images again and compare with the recorded hashes. Exit with code 2 if anything differs.

    Stores are compared with their manifests, images with the hashes taken when they were first read (for downloads:
    unpacked).

    An image folder outside data-dir: manicap data verify PATH

    Args:
        paths: Stores and image data to check; all in data-dir if omitted.
        data_dir: Where stores and datasets are kept.
    """
    paths = paths or (*list_stores(data_dir), *(files.path for files in list_image_files(data_dir)))
    if not paths:
        raise UserError(f"no stores and no images in {data_dir}")
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
    return verify_store(path) if images is None else images.verify()


def data_splits(
    path: StorePath,
    annotation_set: AnnotationSet = "corrected",
    protocol: ProtocolName = "fixed",
    seed: Seed = 0,
) -> None:
    """Show how a store is split for probing: what each filter drops, and which variables are kept.

    Args:
        path: Directory of the store, as 'data list' shows it.
        annotation_set: Names and RAM addresses of the variables.
        protocol: 'fixed', or 'reference' for the 2019 code's behaviour.
        seed: Seed of the shuffle.
    """
    splits = probe_splits(open_store(path), find_protocol(protocol), annotation_set, seed)
    table = Table(title=f"{path}: protocol {protocol}, annotations {annotation_set}, seed {seed}")
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


def data_remove(path: StorePath) -> None:
    """Delete a store.

    Args:
        path: Directory of the store, as 'data list' shows it.
    """
    remove_store(path)
    print(f"removed {path}")


def store_lines(stores: list[Store]) -> str:
    """One line per store, with its full path."""
    head = ("store", "game", "frames", "lives", "MB", "purpose", "seed", "policy")
    rows = []
    for store in stores:
        config, size = store.config, sum(entry["bytes"] for entry in store.manifest["files"].values())
        counts = (f"{len(store):,}", f"{len(store.episodes):,}", f"{size / 1e6:,.0f}")
        rows.append((str(store.path), config.game, *counts, config.purpose, str(config.seed), config.policy))
    return in_columns(head, rows, numbers=("frames", "lives", "MB", "seed"))
