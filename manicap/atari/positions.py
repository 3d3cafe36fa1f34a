"""Where objects are drawn, estimated from the frames: linear maps from RAM values to pixels.

    maps = estimate_positions(frames, labels, ["ball_x", "ball_y", "enemy_y"])
    maps["ball"].x.at(labels["ball_x"])     # pixel columns of the ball's centre

Every frame's changing pixels (those that differ from the median frame) are shifted by -slope * value and averaged. With
the right slopes the object's pixels pile up in one place, its intercept; with other slopes they smear. The height of
the pile above that of shuffled values, measured on frames not used to find it, tells whether to trust it.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from manicap.core.seeding import numpy_generator
from manicap.play.places import AxisMap, PixelMap, object_axes

SLOPES: tuple[float, ...] = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
MIN_CONTRAST = 0.5
"""Fraction of held-out frames that show the object where the map says, above that of shuffled values."""
_NEARLY_BEST = 0.85
"""Slopes are tried in order: objects that mirror each other (Freeway's cars) fit 1 and -1 almost equally well."""
MIN_DISTINCT = 4
"""A variable with fewer values does not move its object enough to determine a slope."""
MAX_FRAMES = 320
_CHANGED = 3
"""Difference from the median frame, in gray levels, that counts as changed."""
_REACH = 48
"""Maximum distance from the peak, in pixels, within the same object."""

Points = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class FoundMap(PixelMap):
    """A map that was estimated; the extent of an object is in whole pixels."""

    contrast: float


def estimate_positions(
    frames: NDArray[np.uint8], labels: Mapping[str, NDArray[np.uint8]], variables: Iterable[str]
) -> dict[str, FoundMap]:
    """Pixel maps of the objects that the named variables place; objects that are not clearly found are omitted.

    `frames` uint8 [n, height, width], `labels[name]` uint8 [n]. Deterministic.
    """
    if frames.ndim != 3 or frames.dtype != np.uint8:
        raise ValueError(f"estimate_positions needs frames uint8 [n, height, width], got {frames.dtype} {frames.shape}")
    names = list(variables)
    for name in names:
        if name not in labels or len(labels[name]) != len(frames):
            count = len(labels[name]) if name in labels else "no"
            raise ValueError(f"estimate_positions needs {len(frames)} labels of {name!r}, got {count}")
    if len(frames) < 2:
        return {}
    background = np.median(frames[_spread(len(frames), 101)], axis=0)
    found: dict[str, FoundMap] = {}
    for stem, axes in object_axes(names).items():
        moving = {axis: name for axis, name in axes.items() if len(np.unique(labels[name])) >= MIN_DISTINCT}
        if moving:
            pixel_map = _locate(frames, background, {axis: labels[name] for axis, name in moving.items()}, moving)
            if pixel_map is not None:
                found[stem] = pixel_map
    return found


def _locate(
    frames: NDArray[np.uint8], background: Values, values: Mapping[str, NDArray[np.uint8]], names: Mapping[str, str]
) -> FoundMap | None:
    chosen = _varied_frames(list(values.values()))
    count, height, width = len(chosen), *frames.shape[1:]
    mask = np.abs(frames[chosen].astype(np.int16) - background) > _CHANGED
    x = values["x"][chosen].astype(np.float64) if "x" in values else np.zeros(count)
    y = values["y"][chosen].astype(np.float64) if "y" in values else np.zeros(count)
    slopes = list(itertools.product(SLOPES if "x" in values else (0.0,), SLOPES if "y" in values else (0.0,)))

    # With one variable the other coordinate is constant (a paddle) or unknown; then only a row or column is found.
    best = _best_pile(mask, x, y, slopes)
    if best.contrast < MIN_CONTRAST and len(values) == 1:
        profile: NDArray[np.bool_] = np.maximum.reduce(mask, axis=2 if "y" in values else 1, keepdims=True)
        best = _best_pile(profile, x, y, slopes)
    if best.contrast < MIN_CONTRAST:
        return None
    known_x, known_y = "x" in values or best.shape[1] > 1, "y" in values or best.shape[0] > 1
    return FoundMap(
        x=AxisMap(names.get("x"), best.slopes[0], best.centre[1]) if known_x else None,
        y=AxisMap(names.get("y"), best.slopes[1], best.centre[0]) if known_y else None,
        width=best.extent[1] if known_x else width,
        height=best.extent[0] if known_y else height,
        contrast=round(best.contrast, 3),
    )


@dataclass(frozen=True)
class _Pile:
    """The best of the slopes tried. Pairs are (row, column), slopes (x, y)."""

    contrast: float
    slopes: tuple[float, float]
    centre: tuple[float, float]
    extent: tuple[int, int]
    shape: tuple[int, int]


def _best_pile(mask: NDArray[np.bool_], x: Values, y: Values, slopes: list[tuple[float, float]]) -> _Pile:
    """Find slopes and place on the even frames; measure the contrast there on the odd ones."""
    even, odd = slice(0, None, 2), slice(1, None, 2)
    points, held_out = np.argwhere(mask[even]), np.argwhere(mask[odd])
    peaks = [float(_pile(points, x[even], y[even], pair)[0].max(initial=-1.0)) for pair in slopes]
    pair = next(pair for pair, peak in zip(slopes, peaks, strict=True) if peak >= _NEARLY_BEST * max(peaks))
    pile, origin = _pile(points, x[even], y[even], pair)
    peak_row, peak_column = divmod(int(np.argmax(pile)), pile.shape[1])
    rows, columns = _component(pile, (peak_row, peak_column))
    check, check_origin = _pile(held_out, x[odd], y[odd], pair)
    row, column = peak_row + origin[0] - check_origin[0], peak_column + origin[1] - check_origin[1]
    inside = 0 <= row < check.shape[0] and 0 <= column < check.shape[1]
    return _Pile(
        contrast=float(check[row, column]) if inside else 0.0,
        slopes=pair,
        centre=(_middle(rows) + origin[0], _middle(columns) + origin[1]),
        extent=(int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1),
        shape=(mask.shape[1], mask.shape[2]),
    )


def _pile(points: Points, x: Values, y: Values, slopes: tuple[float, float]) -> tuple[Values, tuple[int, int]]:
    """Fraction of frames with a changed pixel at each place after shifting, minus the same for shuffled values."""
    if not len(points):
        return np.zeros((1, 1)), (0, 0)
    shuffled = numpy_generator(0, "positions", len(x)).permutation(len(x))
    t, row, column = points.T
    shifts = [(np.rint(slopes[1] * y[order]), np.rint(slopes[0] * x[order])) for order in (np.arange(len(x)), shuffled)]
    low_row, low_column = (-int(max(shifts[0][axis].max(), 0.0)) for axis in (0, 1))
    high_row = int(row.max() - min(shifts[0][0].min(), 0.0)) + 1
    high_column = int(column.max() - min(shifts[0][1].min(), 0.0)) + 1
    shape = (high_row - low_row, high_column - low_column)
    counts = [
        np.bincount(
            ((row - dy[t] - low_row) * shape[1] + (column - dx[t] - low_column)).astype(np.int64),
            minlength=shape[0] * shape[1],
        )
        for dy, dx in shifts
    ]
    return ((counts[0] - counts[1]) / len(x)).reshape(shape), (low_row, low_column)


def _component(pile: Values, peak: tuple[int, int]) -> tuple[Points, Points]:
    """Rows and columns of the patch around the peak that is at least half as high."""
    top, left = max(peak[0] - _REACH, 0), max(peak[1] - _REACH, 0)
    high = pile[top : peak[0] + _REACH + 1, left : peak[1] + _REACH + 1] >= pile[peak] / 2
    patch = np.zeros_like(high)
    patch[peak[0] - top, peak[1] - left] = True
    while True:
        # Pixels at distance two still belong: a car's wheels are separate from its body.
        grown = sliding_window_view(np.pad(patch, 2), (5, 5)).any(axis=(2, 3)) & high
        if (grown == patch).all():
            break
        patch = grown
    rows, columns = np.nonzero(patch)
    return rows + top, columns + left


def _middle(indices: Points) -> float:
    return float(indices.min() + indices.max()) / 2


def _varied_frames(values: list[NDArray[np.uint8]]) -> Points:
    """Up to MAX_FRAMES frames over as many different values as possible: an object at rest reveals no slope."""
    generator = numpy_generator(0, "positions", "frames")
    order = generator.permutation(len(values[0]))
    key = np.ravel_multi_index([value[order].astype(np.int64) for value in values], (256,) * len(values))
    by_key = np.argsort(key, kind="stable")
    _, starts, counts = np.unique(key[by_key], return_index=True, return_counts=True)
    visit = np.empty(len(order), np.int64)
    visit[by_key] = np.arange(len(order)) - np.repeat(starts, counts)  # how many earlier frames have this value
    return order[np.argsort(visit, kind="stable")[:MAX_FRAMES]]


def _spread(count: int, limit: int) -> Points:
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(np.int64))
