"""One episode of a store as a file that needs no manicap: a film to look at, or arrays for other programs.

An npz file is read with `numpy.load(path, allow_pickle=False)`: `frames` uint8 [n, H, W], in colour [n, H, W, 3], and
what else is known of each frame, by the kind of store.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError, refused_by_system
from manicap.core.files import atomic_path
from manicap.core.progress import Tracker
from manicap.core.ranges import component
from manicap.play.store import PlayStore, Rows
from manicap.play.video import Bytes, Clip, write_gif, write_mp4

Format = Literal["mp4", "gif", "npz"]
FPS = 15.0
"""Of a film, unless another number is given."""
CHUNK_ROWS = 128


@dataclass(frozen=True)
class Exportable:
    """A store, and what its films and arrays are like."""

    store: PlayStore
    arrays: Callable[[Rows], dict[str, NDArray[Any]]]
    """What is known of rows, by name."""
    episode: str
    """What an episode is called, and several: `life`, `lives`."""
    episodes: str
    remedy: str
    """How to have colours in a store that has none."""
    pixel_width: int = 1
    """How many times as wide as high a pixel is shown."""
    played_fps: float | None = None
    """Steps per second of play; None if nobody knows."""


@dataclass(frozen=True)
class Wanted:
    """What to write."""

    format: Format
    episode: int | None = None
    """Number of the episode; the longest if None."""
    out: Path | None = None
    """`pong-life-3.mp4` if None."""
    colour: bool | None = None
    """If the store has it, if None."""
    scale: int = 2
    """Of films: a pixel is this many pixels high."""
    fps: float = FPS
    """Of films."""
    force: bool = False
    """Replace a file that exists, once the new one is complete."""
    quiet: bool = False


@dataclass(frozen=True)
class Exported:
    path: Path
    num_frames: int
    seconds: float | None
    """As shown; of arrays, as played."""

    def __str__(self) -> str:
        size = self.path.stat().st_size / 1e6
        seconds = "" if self.seconds is None else f"{self.seconds:,.1f} seconds, "
        return f"wrote {self.path}: {self.num_frames:,} frames, {seconds}{size:,.2f} MB"


def export_episode(source: Exportable, wanted: Wanted) -> Exported:
    """Write one episode, a row of `store.episodes`."""
    store, format = source.store, wanted.format
    number = _choose_episode(source, wanted.episode)
    out = wanted.out or Path(f"{component(store.subject, 'play')}-{source.episode}-{number}.{format}")
    _check_place(store, out, wanted.force)
    has_colour = _choose_colour(source, wanted.colour)
    start, length = int(store.episodes["start"][number]), int(store.episodes["length"][number])
    rows = np.arange(start, start + length)
    shape = (length, *store.frames.shape[1:], *((3,) if has_colour else ()))
    with Tracker(f"writing {out}", length, "frames", wanted.quiet) as tracker:
        chunks = _read(store, rows, has_colour, tracker)
        try:
            with atomic_path(out) as scratch:
                if format == "npz":
                    _write_npz(scratch, shape, chunks, source.arrays(rows))
                else:
                    write = {"mp4": write_mp4, "gif": write_gif}[format]
                    write(scratch, Clip(chunks, shape, wanted.scale, source.pixel_width, wanted.fps))
        except OSError as error:
            raise refused_by_system(f"cannot write {out}", error) from error
    fps = source.played_fps if format == "npz" else wanted.fps
    return Exported(out, length, None if fps is None else length / fps)


def _choose_episode(source: Exportable, episode: int | None) -> int:
    store = source.store
    if episode is None:
        return int(store.episodes["length"].argmax())
    count = len(store.episodes)
    if not 0 <= episode < count:
        raise UserError(f"{store.path} has {count} {source.episodes} (0 to {count - 1}), got episode {episode}")
    return episode


def _check_place(store: PlayStore, out: Path, force: bool) -> None:
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent}")
    if out.parent.resolve() == store.path.resolve():
        raise UserError(f"{out} would be a file in the store: choose another directory with --out")
    if (out.is_file() or out.is_symlink()) and not force:
        raise UserError(f"{out} exists; choose another name with --out, or replace it with --force")


def _choose_colour(source: Exportable, colour: bool | None) -> bool:
    store = source.store
    if colour and not store.has_colour:
        raise UserError(f"{store.path} has no colour (its frames were recorded in gray): {source.remedy}")
    return store.has_colour if colour is None else colour


def _read(store: PlayStore, rows: Rows, colour: bool, tracker: Tracker) -> Iterator[Bytes]:
    for first in range(0, len(rows), CHUNK_ROWS):
        chosen = rows[first : first + CHUNK_ROWS]
        yield store.colour_frames(chosen) if colour else np.asarray(store.frames[chosen])
        tracker.advance(len(chosen))


def _write_npz(path: Path, shape: tuple[int, ...], chunks: Iterable[Bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Like `numpy.savez_compressed`, but frame by frame: an episode may exceed the memory. It holds no dates."""
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
