"""What an encoder sees of a step: gray or colour, one frame or the last few, at the size of the store or another.

    View(stack=4, size=(84, 84)).read(store, rows)      # uint8 [n, 4, 84, 84], as most agents see a game

All views come from the same store.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from manicap.core.config import check_config
from manicap.core.ranges import Range
from manicap.play.pictures import gray_of, resize_by_area
from manicap.play.store import PlayStore

Bytes = NDArray[np.uint8]
Rows = NDArray[np.int64]
Stack = Annotated[int, Range(1, 64)]
Side = Annotated[int, Range(8, 1024)]
CONSOLE = (210, 160)
"""Height and width of Atari's frames."""


@dataclass(frozen=True)
class View:
    """How frames are shown to an encoder."""

    colour: bool = False
    """Red, green and blue instead of gray."""
    stack: Stack = 1
    """The last frames of the life, oldest first; before its first frame, that frame is repeated."""
    size: tuple[Side, Side] | None = None
    """Height and width, each pixel the mean of the area that it covers; as recorded if None."""
    recorded: tuple[Side, Side] = CONSOLE
    """Height and width of the store's frames."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width. In a stack of colour frames the three channels of a frame stay together."""
        return (self.stack * (3 if self.colour else 1), *(self.size or self.recorded))

    def __post_init__(self) -> None:
        check_config(self)

    def __str__(self) -> str:
        """`gray`, or `colour, 4 frames, 84 x 84`; the size if it is not Atari's"""
        frames = [f"{self.stack} frames"] if self.stack > 1 else []
        height, width = self.size or self.recorded
        size = [f"{height} x {width}"] if (height, width) != CONSOLE else []
        return ", ".join(["colour" if self.colour else "gray", *frames, *size])

    def read(self, store: PlayStore, rows: Rows) -> Bytes:
        """uint8 [..., C, H, W] for rows [...]. Every frame is decoded once, in however many stacks it is."""
        rows = np.asarray(store.rows[rows])
        if self.stack == 1:
            return self._single(store, rows.ravel()).reshape(*rows.shape, *self.shape)
        needed, place = np.unique(stacked_rows(store, rows, self.stack), return_inverse=True)
        return self._single(store, needed)[place.ravel()].reshape(*rows.shape, *self.shape)

    def chunks(self, store: PlayStore, rows: Rows, size: int = 512) -> Iterator[Bytes]:
        """The same in chunks: a pass over a store takes no memory."""
        if not self.colour and self.stack == 1 and self.size is None:
            for chunk in store.frame_chunks(rows, size):
                yield (chunk if chunk.ndim == 3 else gray_of(chunk))[:, None]
            return
        for start in range(0, len(rows), size):
            yield self.read(store, rows[start : start + size])

    def _single(self, store: PlayStore, rows: Rows) -> Bytes:
        """[n, C, H, W] of single frames."""
        if self.colour:
            frames = np.ascontiguousarray(store.colour_frames(rows).transpose(0, 3, 1, 2))
        else:
            frames = np.asarray(store.frames[rows])[:, None]
        return frames if self.size is None else resize_by_area(frames, *self.size)


GRAY = View()


def usual_view(
    store: PlayStore, colour: bool | None = None, stack: int = 1, size: tuple[int, int] | None = None
) -> View:
    """How the frames of a store are shown unless told otherwise: a game's in gray, an environment's as recorded."""
    height, width = store.frames[:1].shape[1:]
    return View(store.usual.colour if colour is None else colour, stack, size, (height, width))


def stacked_rows(store: PlayStore, rows: Rows, stack: int) -> Rows:
    """Rows [..., stack] of the frames up to each row, none before the first of its life."""
    starts = store.episodes["start"]
    first = starts[np.searchsorted(starts, rows, side="right") - 1]
    return np.maximum(rows[..., None] + np.arange(1 - stack, 1), first[..., None])
