"""Compression of single frames: zstd, which releases Python's lock while it works.

Codes of 300 steps of Pong / Seaquest / Ms Pacman, every step alone, one core:

                bytes               compress, us       decompress, us
    zstd 3      159   639  1308       9   17   27      18    9   14
    zstd 9      121   542   846      21   76  115      18    8   10
    lz4         375  1133  3818       4    7   17       7    8   10
    lz4hc 9     246   757   956     102  236  517       4    5    5
    blosc2      192   723  1157      42   77  103      33   43   46
    deflate 6   179   632   754      89  138  172      62   37   32
    PNG         446   831  1094     218  271  321      82  101  107
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError

LEVEL = 3
"""Level 9 would save a fourth of the bytes and cost up to a fourth of a step of the emulator."""

_local = threading.local()


def compressor() -> Callable[[NDArray[np.uint8]], bytes]:
    """A function from codes, contiguous, to bytes; of one thread."""
    compress = _zstandard().ZstdCompressor(level=LEVEL).compress
    return lambda codes: compress(codes.data)


def decompress(content: NDArray[np.uint8] | memoryview) -> NDArray[np.uint8]:
    """The codes again; a `ValueError` if these are not the bytes of a frame."""
    if not hasattr(_local, "decompress"):
        zstandard = _zstandard()
        _local.decompress, _local.error = zstandard.ZstdDecompressor().decompress, zstandard.ZstdError
    try:
        return np.frombuffer(_local.decompress(content), np.uint8)
    except _local.error as error:
        raise ValueError(str(error)) from None


def end_of_first(content: NDArray[np.uint8]) -> int:
    """Length of the first of several compressed pieces, one after the other."""
    reader = _zstandard().ZstdDecompressor().decompressobj()
    reader.decompress(content)
    return len(content) - len(reader.unused_data)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise UserError(f"frames are compressed with zstd: pip install zstandard ({error})") from None
    return zstandard
