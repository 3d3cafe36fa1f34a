"""Frames on disk that are indexed like an array and decoded as they are read.

store.frames[100:200]                     # uint8 [100, H, W]
store.frames.read(rows, colour=True)      # uint8 [n, H, W, 3]
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class DecodedFrames(ABC):
    """An array of frames uint8 [N, H, W]; indexing decodes."""

    dtype = np.dtype(np.uint8)

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape

    @abstractmethod
    def read(self, key: Any, colour: bool = False) -> Bytes:
        """Frames [..., H, W], or [..., H, W, 3] in colour, of the rows that NumPy would take for `key`."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Of the frames as an array."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, key: Any) -> Bytes:
        """Rows as NumPy takes them: numbers, slices, lists, masks; behind them, numbers and slices: `[rows, 10:20]`."""
        key, *rest = key if isinstance(key, tuple) and key else (key,)
        key = slice(None) if key is Ellipsis and not rest else key
        if key is Ellipsis or key is None or not all(isinstance(each, int | np.integer | slice) for each in rest):
            raise IndexError("frames are indexed by rows, and behind them by numbers and slices: frames[rows, 10:20]")
        frames = self.read(key)
        return frames[(slice(None),) * (frames.ndim - 2) + tuple(rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self[:]
        return found if dtype is None else found.astype(dtype)

    def __iter__(self) -> Iterator[Bytes]:
        return (self[row] for row in range(len(self)))
