"""Frames in gray, and of another size."""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
LUMA = np.array([299, 587, 114], np.float32)
"""Shares of red, green and blue in a shade of gray (ITU-R BT.601), in thousandths."""
LEAST_PERIOD = 16
"""Products of smaller matrices take longer than their numbers say."""


def gray_of(frames: Bytes) -> Bytes:
    """Shades [...] of colours [..., 3], rounded.

    In float32, four times faster than in integers and as exact: sums are below 2^24, thousandths far above its error.
    """
    thousandths = frames.astype(np.float32) @ LUMA
    thousandths += 500
    thousandths /= 1000
    return thousandths.astype(np.uint8)


def resize_by_area(frames: Bytes, height: int, width: int) -> Bytes:
    """Frames uint8 [..., H, W] to [..., height, width], each pixel the mean of the area that it covers, rounded.

    Agents' wrappers shrink frames in this way. Means are exact: all sums are of whole numbers.
    """
    return _resized(frames[..., None], height, width)[..., 0]


class AreaResizer:
    """Resizes frames [H, W] or [H, W, C] one after the other as `resize_by_area` does, but only where they change."""

    def __init__(self, height: int, width: int) -> None:
        self._height, self._width = height, width
        self._last: Bytes | None = None

    def __call__(self, frame: Bytes) -> Bytes:
        image = frame[..., None] if frame.ndim == 2 else frame
        if self._last is None or self._last.shape != image.shape:
            self._last, self._resized = image.copy(), _resized(image, self._height, self._width)
        else:
            self._update(image, self._last)
        return self._resized[..., 0].copy() if frame.ndim == 2 else self._resized.copy()

    def _update(self, image: Bytes, last: Bytes) -> None:
        differs = _in_words(image) != _in_words(last)
        rows = np.flatnonzero(differs.any(1))
        if not len(rows):
            return
        H, W, C = image.shape
        words = np.flatnonzero(differs[rows[0] : rows[-1] + 1].any(0))
        word_bytes = W * C // differs.shape[1]
        columns = words[0] * word_bytes // C, ((words[-1] + 1) * word_bytes - 1) // C
        (p, q), (s, t) = _period(H, self._height), _period(W, self._width)
        top, bottom, left, right = rows[0] // p, rows[-1] // p + 1, columns[0] // s, columns[1] // s + 1
        old = np.s_[top * p : bottom * p, left * s : right * s]
        new = np.s_[top * q : bottom * q, left * t : right * t]
        self._resized[new] = _resized(image[old], (bottom - top) * q, (right - left) * t)
        last[old] = image[old]


def _in_words(image: Bytes) -> NDArray[Any]:
    """[H, n], of eight bytes each where a row can be divided into such: an eighth of the numbers to compare."""
    rows = image.reshape(len(image), -1)
    return rows.view(np.uint64) if rows.shape[1] % 8 == 0 and rows.flags.c_contiguous else rows


def _resized(frames: Bytes, height: int, width: int) -> Bytes:
    """[..., H, W, C] to [..., height, width, C]; every p old rows become q new ones by the same weights."""
    *batch, H, W, C = frames.shape
    (p, q), (s, t) = _period(H, height), _period(W, width)
    rows = _area_weights(p, q) @ frames.reshape(*batch, -1, p, W * C).astype(np.float32)
    # A mean that is no half is at least 1 / (2 p s) from one, and float32 is off by less than 2^-16 up to 255.
    exact = np.float32 if p * s < 2**15 else np.float64
    means = rows.astype(exact, copy=False).reshape(-1, s * C) @ _pixel_weights(s, t, C, exact)
    means /= exact(p * s)
    return np.rint(means, out=means).astype(np.uint8).reshape(*batch, height, width, C)


@cache
def _period(old: int, new: int) -> tuple[int, int]:
    """Numbers of old and new pixels after which their edges meet again; several times, if these are very few."""
    common = math.gcd(old, new)
    num_blocks = max(
        count for count in range(1, common + 1) if common % count == 0 and (count == 1 or old >= count * LEAST_PERIOD)
    )
    return old // num_blocks, new // num_blocks


@cache
def _area_weights(old: int, new: int) -> NDArray[np.float32]:
    """[new, old]: how much of each old pixel is in the interval that a new one covers, in 1 / new of an old pixel."""
    starts, pixels = np.arange(new)[:, None] * old, np.arange(old) * new
    overlap = np.minimum(starts + old, pixels + new) - np.maximum(starts, pixels)
    return np.clip(overlap, 0, None).astype(np.float32)


@cache
def _pixel_weights(old: int, new: int, channels: int, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """[old * C, new * C]: the same for pixels of C channels, each of which is added up alone.

    Two of three weights are 0, and one product of whole rows is still faster than one of every channel.
    """
    by_channel = np.kron(_area_weights(old, new).T, np.eye(channels, dtype=np.float32))
    return by_channel.astype(dtype)
