"""Commands for stores at a URL: data push, data pull, and what data list says of them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import tyro

from manicap.atari.integrity import open_store
from manicap.atari.leavings import remove_leavings
from manicap.atari.remote import RemoteStore, fetch_store, is_uploaded, list_remote, place_of, upload_store
from manicap.atari.store import Store, list_stores
from manicap.core.errors import Failure, UserError
from manicap.core.files import exclusive_lock
from manicap.core.paths import DATA_DIR
from manicap.core.printing import in_columns
from manicap.core.remote import Remote, RemoteFailure, remote_of, write_origin
from manicap.play.leavings import lock_path

StorePaths = Annotated[tuple[Path, ...], tyro.conf.Positional]
StoreNames = Annotated[tuple[str, ...], tyro.conf.Positional]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Elsewhere:
    """What `data list` prints of the remote."""

    lines: str = ""
    damage: str = ""
    """A sentence, if any store there is damaged."""


def stores_elsewhere(data_dir: Path) -> Elsewhere:
    """The stores that are at the remote only; nothing for a local directory, or if the remote cannot be reached."""
    remote = remote_of(data_dir)
    if remote is None:
        return Elsewhere()
    try:
        found, faults = list_remote(remote)
    except RemoteFailure as failure:
        print(f"{failure}; what follows is the cache", file=sys.stderr)
        return Elsewhere()
    here = {place_of(path) for path in list_stores(data_dir)}
    rows = [_row(each) for each in found if each.place not in here]
    head = (f"only at {remote.url}", "game", "frames", "lives", "MB", "purpose", "seed", "policy")
    table = [in_columns(head, rows, numbers=("frames", "lives", "MB", "seed"))] if rows else []
    number = (
        f"{len(faults)} store at {remote.url} is" if len(faults) == 1 else f"{len(faults)} stores at {remote.url} are"
    )
    return Elsewhere("\n".join([*table, *map(str, faults)]), f"{number} damaged" if faults else "")


def _row(found: RemoteStore) -> tuple[str, ...]:
    config = found.store.config
    counts = (f"{len(found.store):,}", f"{found.num_lives:,}", f"{found.num_bytes / 1e6:,.0f}")
    return (found.place, config.game, *counts, config.purpose, str(config.seed), config.policy)


def data_pull(names: StoreNames = (), data_dir: Path = DATA_DIR) -> None:
    """Download stores from a URL into its local cache, and print where they are.

    For a machine that will be offline. Commands that need a store download it by themselves.

    Example: manicap data pull pong --data-dir s3://bucket/manicap

    Args:
        names: Games, or stores as 'data list' names them (pong/1a2b3c4d5e6f); all if omitted.
        data_dir: The URL.
    """
    remote = _require_remote(data_dir)
    found, faults = list_remote(remote)
    chosen = _chosen([each.place for each in found], names, remote)
    if not chosen and not faults:
        print(f"no stores at {remote.url}")

    def pull(place: str) -> str:
        path = data_dir / place
        with exclusive_lock(lock_path(path), on_wait=lambda: None):
            remove_leavings(path)
            if not path.is_dir():
                fetch_store(remote, path)
        return str(open_store(path).path)

    _for_each(chosen, pull, "downloaded", list(faults))


def data_push(paths: StorePaths = (), data_dir: Path = DATA_DIR) -> None:
    """Upload stores to a URL. Stores that are already there are left unchanged.

    Commands upload what they collect by themselves; this is for stores that were collected elsewhere, or while the URL
    could not be reached.

    Example: manicap data push data/pong/1a2b3c4d5e6f --data-dir s3://bucket/manicap

    Args:
        paths: Directories of stores, or data directories; the stores in the local cache of the URL if omitted.
        data_dir: The URL.
    """
    remote = _require_remote(data_dir)
    cached = list_stores(data_dir)
    chosen = [store for path in paths for store in list_stores(path) or [path]] if paths else cached
    if not chosen:
        print(f"no stores in {data_dir}, the cache of {remote.url}")

    def push(path: Path) -> str:
        is_new = upload_store(open_store(path), remote)
        if path in cached:
            write_origin(path, f"{remote.url}/{place_of(path)}")
        return f"{path}: {'uploaded' if is_new else 'was there already'}"

    _for_each(chosen, push, "uploaded")


def _for_each(
    items: Sequence[Item], do: Callable[[Item], str], what: str, problems: list[UserError | Failure] | None = None
) -> None:
    """Print what was done with each item, whatever happens to the others; raise at the end if anything went wrong.

    Failures of the remote itself are not the item's: they end it.
    """
    problems = problems or []
    for problem in problems:
        print(problem, flush=True)
    for item in items:
        try:
            print(do(item), flush=True)
        except RemoteFailure:
            raise
        except (UserError, Failure) as error:
            problems.append(error)
            print(error, flush=True)
    if problems:
        raise UserError(f"{len(problems)} stores were not {what}" if len(problems) > 1 else f"a store was not {what}")


def require_uploaded(store: Store, data_dir: Path) -> None:
    """A collection for a URL has failed in part if the store is not there."""
    remote = remote_of(data_dir)
    if remote is not None and not is_uploaded(store, remote):
        raise Failure(
            f"the store is not at {remote.url}; to upload it, run 'manicap data push --data-dir {remote.url}'"
        )


def _require_remote(data_dir: Path) -> Remote:
    remote = remote_of(data_dir)
    if remote is None:
        raise UserError(f"{data_dir} is a local directory; give a URL: --data-dir s3://bucket/manicap")
    return remote


def _chosen(places: Sequence[str], names: Sequence[str], remote: Remote) -> list[str]:
    """Places that are named, or whose game is; the URL may precede a name."""
    asked = [name.removeprefix(remote.url).strip("/") for name in names]
    for name in asked:
        if name not in places and not any(place.startswith(f"{name}/") for place in places):
            raise UserError(
                f"there is no store {name} at {remote.url}; see 'manicap data list --data-dir {remote.url}'"
            )
    return [place for place in places if not asked or place in asked or place.split("/")[0] in asked]
