"""Frames of a store, compressed one by one: any row can be read alone, in gray or in colour.

    store.frames[100:200]                     # uint8 [100, 210, 160], like an array
    store.frames.read(rows, colour=True)      # uint8 [n, 210, 160, 3]

A row takes some 35 us, half to decompress it and half to look up shades. Both release Python's lock, but so briefly
that two threads, which pass it to and fro, are no faster than one; decoding can go on beside other work.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE
from manicap.atari.palette import GRAY, RGB
from manicap.atari.screens import BOTH, SHADES, Bytes, Shades
from manicap.core.errors import UserError
from manicap.play.codec import decompress
from manicap.play.frames import DecodedFrames

PIXELS = FRAME_SHAPE[0] * FRAME_SHAPE[1]
Rows = NDArray[np.int64]


class CompressedFrames(DecodedFrames):
    """Frames uint8 [N, 210, 160] of a store."""

    def __init__(self, path: Path, steps: NDArray[np.void], tables: Bytes) -> None:
        super().__init__((len(steps), *FRAME_SHAPE))
        self.path = path
        self._offsets, self._sizes = (steps[name].astype(np.int64) for name in ("offset", "size"))
        self._table_of_row = steps["table"].astype(np.int64)
        self._rows = np.arange(len(steps))
        self._gray, self._colour = Shades(tables, colour=False), Shades(tables, colour=True)
        self._bytes = np.memmap(path, np.uint8, "r")
        self._content = self._bytes.data  # quicker to slice

    @property
    def has_colour(self) -> bool:
        return not bool((self._table_of_row == SHADES).any())

    def read(self, key: Any, colour: bool = False) -> Bytes:
        """Frames [..., 210, 160], or [..., 210, 160, 3] in colour (in memory each colour is a plane of its own)."""
        if colour and not self.has_colour:
            raise UserError(f"{self.path.parent} was converted from gray frames and has no colour: collect it again")
        rows = np.asarray(self._rows[key])
        found = np.empty((rows.size, 3 if colour else 1, PIXELS), np.uint8)
        self._decode(rows.ravel(), found, colour)
        planes = found.reshape(*rows.shape, found.shape[1], *FRAME_SHAPE)
        return np.moveaxis(planes, -3, -1) if colour else planes[..., 0, :, :]

    def _decode(self, rows: Rows, found: Bytes, colour: bool) -> None:
        """Into planes [n, C, PIXELS]."""
        shades = self._colour if colour else self._gray
        starts, ends = self._offsets[rows], self._offsets[rows] + self._sizes[rows]
        places = zip(rows.tolist(), starts.tolist(), ends.tolist(), self._table_of_row[rows].tolist(), strict=True)
        for (row, start, end, table), planes in zip(places, found, strict=True):
            try:
                codes = decompress(self._content[start:end])
            except ValueError as error:
                raise UserError(f"{self.path}: row {row} cannot be decoded ({error}); collect it again") from None
            if table == SHADES:
                planes[0] = codes
            elif table == BOTH:
                both = (RGB if colour else GRAY[:, None])[codes.reshape(2, PIXELS)]
                np.maximum(both[0].T, both[1].T, out=planes)
            else:
                shades.paint(table, codes, planes)
