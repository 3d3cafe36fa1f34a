"""What every diagnostic requires of its input: finite numbers, one row per sample."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def as_samples(values: NDArray[Any], name: str, ndim: int = 2, at_least: int = 2) -> Floats:
    """`values` as float64 with `ndim` axes and `at_least` rows, or a ValueError that describes what was passed."""
    array = np.asarray(values)
    if array.ndim != ndim or len(array) < at_least or not array.size:
        axes = "[n, D]" if ndim == 2 else "[n, heads, D]"
        raise ValueError(f"{name} must be {axes} with n >= {at_least} and D >= 1, got shape {list(array.shape)}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; {int((~np.isfinite(array)).sum())} entries are not")
    return array


def require_pairs(first: Floats, second: Floats) -> None:
    if first.shape != second.shape:
        raise ValueError(f"pairs need two arrays of one shape, got {list(first.shape)} and {list(second.shape)}")


def unit_rows(samples: Floats) -> Floats:
    """Every row divided by its length; a zero row stays zero."""
    length = np.linalg.norm(samples, axis=-1, keepdims=True)
    return samples / np.where(length > 0, length, 1)
