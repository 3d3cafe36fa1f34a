"""The RAM of every step, compressed: blocks of 1,024 rows, in each the values of a byte one after the other.

Most bytes change seldom, so 128 take ten. A store's manifest says where the blocks begin.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import RAM_SIZE
from manicap.core.errors import UserError
from manicap.play.codec import compressor, decompress, end_of_first
from manicap.play.integrity import SLICE_ROWS

BLOCK_ROWS = SLICE_ROWS
LARGEST_BLOCK = 2 * BLOCK_ROWS * RAM_SIZE
"""Bytes that no block exceeds: what cannot be compressed grows by less than a hundredth."""

Bytes = NDArray[np.uint8]


def write_ram(path: Path, ram: Bytes) -> None:
    """Write RAM [N, 128]."""
    compress = compressor()
    with path.open("wb") as file:
        for start in range(0, len(ram), BLOCK_ROWS):
            file.write(compress(np.ascontiguousarray(ram[start : start + BLOCK_ROWS].T)))


def block_starts(path: Path) -> Iterator[int]:
    """Where the blocks of a file begin."""
    content, start = np.fromfile(path, np.uint8), 0
    while start < len(content):
        yield start
        start += end_of_first(content[start : start + LARGEST_BLOCK])


def read_ram(path: Path, starts: Sequence[int], num_rows: int) -> Bytes:
    """RAM [N, 128] of a file whose blocks begin at `starts`."""
    content, found = np.fromfile(path, np.uint8), np.empty((num_rows, RAM_SIZE), np.uint8)
    for block, (start, stop) in enumerate(zip(starts, [*starts[1:], len(content)], strict=True)):
        rows = found[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]
        try:
            rows[:] = decompress(content[start:stop]).reshape(RAM_SIZE, len(rows)).T
        except ValueError as error:
            first = block * BLOCK_ROWS
            raise UserError(
                f"{path}: rows {first} to {first + len(rows) - 1} cannot be decoded ({error}); collect it again"
            ) from None
    return found
