"""Features as converged probes see them: nothing depends on the scale that an encoder gave them.

    z = (x - mean) / max(std, 0.3 median std)

Mean and deviation are those of the training frames, which needs no labels. Divided by its own deviation, a feature that
hardly varies in training would dwarf all others in a test frame where it does vary; the floor prevents this. Features
that are constant in training are left out.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.errors import UserError
from manicap.probing.feature_cache import Features

LEAST_DEVIATION = 0.3
"""Of the median deviation of the features that vary."""
CONSTANT = 1e-6
"""A feature whose deviation is smaller than this share of its mean is constant: the rest is rounding."""
ROWS = 4096
"""Rows at a time: bounds the memory of copies."""


@dataclass(frozen=True)
class Standardisation:
    kept: NDArray[np.int64]
    """[R]: the features that vary in training."""
    mean: NDArray[np.float32]
    """[R]"""
    scale: NDArray[np.float32]
    """[R]: what a centred feature is multiplied by."""
    variance: float
    """Total variance of the standardised features: R, less what the floor takes."""

    @classmethod
    def of(cls, features: Features) -> "Standardisation":
        """From training features [n, F]. Raises a `UserError` if one is NaN or infinite."""
        count, starts = len(features), range(0, len(features), ROWS)
        with np.errstate(all="ignore"):  # reported below
            mean = sum(features[start : start + ROWS].sum(0, dtype=np.float64) for start in starts) / count
            squares = sum(np.square(features[start : start + ROWS] - mean).sum(0) for start in starts)
            std = np.sqrt(np.asarray(squares) / count)
        broken = int((~np.isfinite(std)).sum())
        if broken:
            raise UserError(f"{broken} of {features.shape[1]} features are NaN or infinite; probes require finite ones")
        kept = np.flatnonzero(std > CONSTANT * np.abs(mean))
        floor = LEAST_DEVIATION * np.median(std[kept]) if len(kept) else 1
        scale = 1 / np.maximum(std[kept], floor)
        variance = float(np.square(std[kept] * scale).sum())
        return cls(kept, np.asarray(mean)[kept].astype(np.float32), scale.astype(np.float32), variance)

    def __call__(self, features: Features) -> Tensor:
        """Standardised features, float32 [n, R]. Raises a `UserError` if one is NaN or infinite."""
        z = torch.from_numpy((features[:, self.kept] - self.mean) * self.scale)
        if not bool(z.isfinite().all()):
            raise UserError("some features are NaN or infinite; probes require finite ones")
        return z
