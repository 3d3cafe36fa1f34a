"""The two screens of a step as one image of codes, from which gray and colour frames follow.

A step shows the maximum of its last two screens, in gray or in each colour. Both screens are kept, as palette indices,
in one byte a pixel: most pixels are equal on both and keep their index, which is even; the others get an odd code,
which stands for a pair of indices. A game has few such pairs (13 in Pong, 72 in Seaquest), so that 128 are enough for
a lane; if not, a new table of pairs begins.
"""

import numpy as np
from numpy.typing import NDArray

from manicap.atari.palette import GRAY, RGB

Bytes = NDArray[np.uint8]
NUM_PAIRS = 128
"""Odd codes."""
MOST_DOUBLED = 64
"""Tables of which two-pixel look-ups are kept, of 128 kB per colour."""
BOTH = 2**32 - 1
"""In the place of a table: the second screen and then the first, without codes; the step has too many pairs."""
SHADES = 2**32 - 2
"""In the place of a table: the codes are shades of gray (a store that was converted from gray frames)."""
_UNKNOWN = 256
_EQUAL = np.arange(256) * 257
"""Pairs of an index with itself."""


class ScreenCoder:
    """Encodes the steps of a lane, one after the other; `tables` has the pairs that it met."""

    def __init__(self) -> None:
        self._tables: list[list[int]] = [[]]
        self._codes = np.full(2**16, _UNKNOWN, np.uint16)  # by first * 256 + second
        self._codes[_EQUAL] = np.arange(256)

    def encode(self, first: Bytes, second: Bytes) -> tuple[int, Bytes]:
        """The table, and the codes of a step's two last screens (palette indices of one shape, a multiple of 8).

        Eight pixels are compared at a time: most screens of a game are nearly equal.
        """
        before, after = (screen.reshape(-1).view(np.uint64) for screen in (first, second))
        [differ] = (before != after).nonzero()
        if not len(differ):
            return self._table, after.view(np.uint8)
        pairs = before[differ].view(np.uint8).astype(np.uint16) << 8 | after[differ].view(np.uint8)
        found = self._codes[pairs]
        if found.max() == _UNKNOWN:
            if not self._learn(np.unique(pairs)):
                return BOTH, np.concatenate([after, before]).view(np.uint8)
            found = self._codes[pairs]
        codes = after.copy()
        codes[differ] = found.astype(np.uint8).view(np.uint64)
        return self._table, codes.view(np.uint8)

    @property
    def tables(self) -> Bytes:
        """[T, NUM_PAIRS, 2]: the first and the second index of each odd code, 0 where there is none."""
        found = np.zeros((len(self._tables), NUM_PAIRS, 2), np.uint8)
        for table, pairs in zip(found, self._tables, strict=True):
            table[: len(pairs)] = [divmod(pair, 256) for pair in pairs] or np.zeros((0, 2))
        return found

    @property
    def _table(self) -> int:
        return len(self._tables) - 1

    def _learn(self, pairs: NDArray[np.uint16]) -> bool:
        """Give codes to the pairs of a step; False if there are more than codes."""
        new = pairs[self._codes[pairs] == _UNKNOWN].tolist()
        if len(self._tables[-1]) + len(new) > NUM_PAIRS:
            new = pairs[pairs >> 8 != pairs & 255].tolist()
            if len(new) > NUM_PAIRS:
                return False
            self._codes[self._tables[-1]] = _UNKNOWN
            self._tables.append([])
        for pair in new:
            self._codes[pair] = 2 * len(self._tables[-1]) + 1
            self._tables[-1].append(pair)
        return True


class Shades:
    """What codes look like.

        shades.paint(table, codes, planes)      # codes [N] to planes [C, N], one gray or three of colour

    Two pixels are looked up at a time, which takes half as long as one by one. Only games whose colours cycle have more
    than a few tables (Battle Zone 2,557 in 100,000 steps); their pixels are looked up one by one.
    """

    def __init__(self, tables: Bytes, colour: bool) -> None:
        """Of tables of pairs [T, NUM_PAIRS, 2]."""
        shades = (RGB if colour else GRAY[:, None]).T
        self._shades = np.repeat(shades[None], len(tables), 0)  # [T, C, 256]
        self._shades[:, :, 1::2] = shades[:, tables].max(3).swapaxes(0, 1)
        self._doubled: dict[int, NDArray[np.uint16]] = {}

    def paint(self, table: int, codes: Bytes, planes: Bytes) -> None:
        if len(self._shades) > MOST_DOUBLED:
            for shades, plane in zip(self._shades[table], planes, strict=True):
                shades.take(codes, out=plane, mode="clip")
            return
        doubled = self._doubled.get(table)
        if doubled is None:
            doubled = self._doubled[table] = _doubled(self._shades[table])
        pairs = codes.view(np.uint16)
        for shades, plane in zip(doubled, planes.view(np.uint16), strict=True):
            shades.take(pairs, out=plane, mode="clip")


def _doubled(shades: Bytes) -> NDArray[np.uint16]:
    """[C, 65536]: two neighbouring codes as one number to their two shades, in the same order of bytes."""
    both = np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    return np.ascontiguousarray(shades[:, both]).view(np.uint16)[..., 0]
