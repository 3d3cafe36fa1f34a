"""Frames in gray, and of another size."""

import math
from functools import cache

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
        differs = image != last
        rows = differs.any((1, 2))
        if not rows.any():
            return
        top, bottom = _blocks(rows, self._height)
        p, q = _period(len(rows), self._height)
        columns = differs[top * p : bottom * p].any(0).any(1)
        left, right = _blocks(columns, self._width)
        s, t = _period(len(columns), self._width)
        old = np.s_[top * p : bottom * p, left * s : right * s]
        new = np.s_[top * q : bottom * q, left * t : right * t]
        self._resized[new] = _resized(image[old], (bottom - top) * q, (right - left) * t)
        last[old] = image[old]


def _resized(frames: Bytes, height: int, width: int) -> Bytes:
    """[..., H, W, C] to [..., height, width, C]; every p old rows become q new ones by the same weights."""
    *batch, H, W, C = frames.shape
    down, across = _area_weights(*_period(H, height)), _area_weights(*_period(W, width))
    rows = down @ frames.astype(np.float32).reshape(*batch, -1, down.shape[1], W * C)
    total = down.shape[1] * across.shape[1]
    # A mean that is no half is at least 1 / (2 total) from one, and float32 is off by less than 2^-16 up to 255.
    exact = np.float32 if total < 2**15 else np.float64
    by_channel = rows.reshape(*batch, height, W, C).swapaxes(-1, -2).astype(exact, copy=False)
    sums = by_channel.reshape(*batch, height, C, -1, across.shape[1]) @ across.T.astype(exact)
    means = sums.reshape(*batch, height, C, width) / exact(total)
    return np.rint(means).astype(np.uint8).swapaxes(-1, -2)


@cache
def _period(old: int, new: int) -> tuple[int, int]:
    """Numbers of old and new pixels after which their edges meet again; several times, if these are very few."""
    common = math.gcd(old, new)
    num_blocks = max(
        count for count in range(1, common + 1) if common % count == 0 and (count == 1 or old >= count * LEAST_PERIOD)
    )
    return old // num_blocks, new // num_blocks


def _blocks(changed: NDArray[np.bool_], new: int) -> tuple[int, int]:
    """The first block of a period with a change, and the one after the last."""
    period, _ = _period(len(changed), new)
    found = np.flatnonzero(changed)
    return int(found[0]) // period, int(found[-1]) // period + 1


@cache
def _area_weights(old: int, new: int) -> NDArray[np.float32]:
    """[new, old]: how much of each old pixel is in the interval that a new one covers, in 1 / new of an old pixel."""
    starts, pixels = np.arange(new)[:, None] * old, np.arange(old) * new
    overlap = np.minimum(starts + old, pixels + new) - np.maximum(starts, pixels)
    return np.clip(overlap, 0, None).astype(np.float32)
