"""Decoding of image files: anything but a picture of a sensible size is an error that names the file."""

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.files import sha256_file

LARGEST_PIXELS = 50_000_000
"""A larger picture is treated as a decompression bomb: a file of kilobytes that fills the memory."""


def decode(path: Path) -> NDArray[np.uint8]:
    """uint8 [3, H, W]."""
    image_module = _pillow()
    try:
        with image_module.open(path) as image:
            if image.width * image.height <= LARGEST_PIXELS:
                return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
            reason = f"it has {image.width} x {image.height} pixels, more than {LARGEST_PIXELS:,}"
    except Exception as error:  # on damaged files Pillow's parsers raise all kinds of exceptions
        reason = str(error) or type(error).__name__
    raise UserError(f"{path} cannot be decoded ({reason}); repair or remove it")


def decode_in_order(paths: Sequence[Path], ahead: int = 256) -> Iterator[tuple[NDArray[np.uint8], str]]:
    """Pixels and sha256 of each file, on all cores."""
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:  # decoding and hashing release the GIL
        warnings.simplefilter("ignore", _pillow().DecompressionBombWarning)  # `decode` says so itself
        for start in range(0, len(paths), ahead):
            yield from pool.map(lambda path: (decode(path), sha256_file(path)), paths[start : start + ahead])


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UserError("reading an image folder requires pillow: install manicap[images]") from None
    return Image
