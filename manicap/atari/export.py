"""One life of a store as a file that needs no manicap: a film to look at, or arrays for other programs.

    export_life(store, "mp4")                       # the longest life, as pong-life-3.mp4
    export_life(store, "npz", episode=0, out=Path("life.npz"))

An npz file is read with `numpy.load(path, allow_pickle=False)`:

    frames          uint8 [n, 210, 160], in colour [n, 210, 160, 3]
    ram             uint8 [n, 128]
    action          uint8 [n]      played from the frame; an index into action_names, 255: the recording ends here
    reward          int32 [n]      what the action brought
    lives           uint8 [n]      lives left
    ended           uint8 [n]      1: the action ended the life; 2: it ended the game
    action_names    text
    label_...       uint8 [n]      each state variable of the annotation set `corrected`

A store that was converted from gray frames has no actions: the five arrays about them are then absent.
"""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.atari.annotations import labels, sets_with
from manicap.atari.emulator import FRAME_SHAPE, open_ale
from manicap.atari.games import find_game
from manicap.atari.screens import Bytes
from manicap.atari.store import Store
from manicap.atari.video import Clip, write_gif, write_mp4
from manicap.core.errors import UserError, refused_by_system
from manicap.core.files import atomic_path
from manicap.core.progress import Tracker

Format = Literal["mp4", "gif", "npz"]
FPS = 15.0
"""As it was played: a step is 4 of the console's 60 frames per second."""
CHUNK_ROWS = 128


@dataclass(frozen=True)
class Exported:
    path: Path
    num_frames: int
    seconds: float
    """As shown; of arrays, as played."""

    def __str__(self) -> str:
        size = self.path.stat().st_size / 1e6
        return f"wrote {self.path}: {self.num_frames:,} frames, {self.seconds:,.1f} seconds, {size:,.2f} MB"


def export_life(
    store: Store,
    format: Format,
    episode: int | None = None,
    out: Path | None = None,
    colour: bool | None = None,
    scale: int = 2,
    fps: float = FPS,
    force: bool = False,
    quiet: bool = False,
) -> Exported:
    """Write one life: row `episode` of `store.episodes`, the longest one if absent.

    In colour if the store has it, unless `colour` says otherwise. `scale` and `fps` are of films. A file that exists is
    replaced only by `force`, and only when the new one is complete.
    """
    life = _choose_life(store, episode)
    out = out or Path(f"{store.config.game}-life-{life}.{format}")
    _check_place(store, out, force)
    has_colour = _choose_colour(store, colour)
    start, length = int(store.episodes["start"][life]), int(store.episodes["length"][life])
    rows = np.arange(start, start + length)
    with Tracker(f"writing {out}", length, "frames", quiet) as tracker:
        chunks = _read(store, rows, has_colour, tracker)
        try:
            with atomic_path(out) as scratch:
                if format == "npz":
                    shape = (length, *FRAME_SHAPE, *((3,) if has_colour else ()))
                    _write_npz(scratch, shape, chunks, _arrays(store, rows))
                else:
                    write = {"mp4": write_mp4, "gif": write_gif}[format]
                    write(scratch, Clip(chunks, length, has_colour, scale, fps))
        except OSError as error:
            raise refused_by_system(f"cannot write {out}", error) from error
    return Exported(out, length, length / (FPS if format == "npz" else fps))


def _choose_life(store: Store, episode: int | None) -> int:
    if episode is None:
        return int(store.episodes["length"].argmax())
    count = len(store.episodes)
    if not 0 <= episode < count:
        raise UserError(f"{store.path} has {count} lives (0 to {count - 1}), got episode {episode}")
    return episode


def _check_place(store: Store, out: Path, force: bool) -> None:
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent}")
    if out.parent.resolve() == store.path.resolve():
        raise UserError(f"{out} would be a file in the store: choose another directory with --out")
    if (out.is_file() or out.is_symlink()) and not force:
        raise UserError(f"{out} exists; choose another name with --out, or replace it with --force")


def _choose_colour(store: Store, colour: bool | None) -> bool:
    if colour and not store.has_colour:
        raise UserError(f"{store.path} has no colour (its frames were recorded in gray): collect it again for colour")
    return store.has_colour if colour is None else colour


def _read(store: Store, rows: NDArray[np.int64], colour: bool, tracker: Tracker) -> Iterator[Bytes]:
    for first in range(0, len(rows), CHUNK_ROWS):
        chosen = rows[first : first + CHUNK_ROWS]
        yield store.colour_frames(chosen) if colour else np.asarray(store.frames[chosen])
        tracker.advance(len(chosen))


def _arrays(store: Store, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    game, ram = find_game(store.config.game), np.asarray(store.ram[rows])
    found: dict[str, NDArray[Any]] = {"ram": ram}
    if store.has_colour:  # recorded by the same versions as actions
        found |= {name: store.steps[name][rows] for name in ("action", "reward", "lives", "ended")}
        found["action_names"] = np.array([action.name for action in open_ale(game, 0).getMinimalActionSet()])
    if "corrected" in sets_with(game):
        found |= {f"label_{name}": values for name, values in labels(ram, game, "corrected").items()}
    return found


def _write_npz(path: Path, shape: tuple[int, ...], chunks: Iterable[Bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Like `numpy.savez_compressed`, but frame by frame: a life can be larger than the memory. It holds no dates."""
    with zipfile.ZipFile(path, "w") as archive:
        with _member(archive, "frames") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)
        for name, array in arrays.items():
            with _member(archive, name) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = zipfile.ZIP_DEFLATED
    return archive.open(entry, "w", force_zip64=True)
