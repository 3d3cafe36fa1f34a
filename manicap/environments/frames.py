"""Frames of a store, compressed one by one: any row can be read alone, in gray or in colour."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.play.codec import decompress
from manicap.play.frames import Bytes, DecodedFrames
from manicap.play.pictures import gray_of


class StoredFrames(DecodedFrames):
    """Frames uint8 [N, H, W] of a store; gray is computed from colour."""

    def __init__(self, path: Path, steps: NDArray[np.void], frame_shape: tuple[int, ...]) -> None:
        super().__init__((len(steps), frame_shape[0], frame_shape[1]))
        self.path, self._stored_shape = path, frame_shape
        self._offsets, self._sizes = (steps[name].astype(np.int64) for name in ("offset", "size"))
        self._rows = np.arange(len(steps))
        self._bytes = np.memmap(path, np.uint8, "r")
        self._content = self._bytes.data  # quicker to slice

    @property
    def has_colour(self) -> bool:
        return len(self._stored_shape) == 3

    def read(self, key: Any, colour: bool = False) -> Bytes:
        """Frames [..., H, W], or [..., H, W, 3] in colour."""
        if colour and not self.has_colour:
            raise UserError(f"{self.path.parent} holds gray frames only: record it in colour")
        rows = np.asarray(self._rows[key])
        shape = self._stored_shape if colour else self._stored_shape[:2]
        found = np.empty((rows.size, *shape), np.uint8)
        for row, frame in zip(rows.ravel().tolist(), found, strict=True):
            stored = self._decode(row)
            frame[...] = gray_of(stored) if self.has_colour and not colour else stored
        return found.reshape(*rows.shape, *shape)

    def _decode(self, row: int) -> Bytes:
        start = self._offsets[row]
        try:
            return decompress(self._content[start : start + self._sizes[row]]).reshape(self._stored_shape)
        except ValueError as error:
            raise UserError(f"{self.path}: row {row} cannot be decoded ({error}); record it again") from None
