"""Features before they are probed: as they are, on another scale, standardised or whitened. To test a probe by."""

from typing import Literal

import numpy as np

from manicap.probing.feature_cache import Features

Rescaling = Literal["none", "tenth", "tenfold", "standardised", "whitened"]
FACTORS: dict[str, float] = {"tenth": 0.1, "tenfold": 10.0}
ROWS = 4096
LEAST_VARIANCE = 1e-6
"""Directions with a smaller share of the largest variance are left out when whitening."""


def rescale(features: Features, how: Rescaling, num_train: int) -> Features:
    """Features [n, F] of all frames, the first of which are the training frames: they determine means and variances.

    Standardised: mean 0 and deviation 1; constant features become 0. Whitened: along the principal directions of the
    standardised features, each with deviation 1.
    """
    if how == "none":
        return features
    if how in FACTORS:
        return features * np.float32(FACTORS[how])
    train = np.asarray(features[:num_train], np.float64)
    mean, std = train.mean(0), train.std(0)
    scale = np.where(std > LEAST_VARIANCE * np.abs(mean), 1 / np.where(std > 0, std, 1), 0)
    if how == "standardised":
        return ((features - mean) * scale).astype(np.float32)
    standard = (train - mean) * scale
    variances, directions = np.linalg.eigh(standard.T @ standard / num_train)
    kept = variances > LEAST_VARIANCE * variances[-1]
    whitening = scale[:, None] * directions[:, kept] / np.sqrt(variances[kept])
    pieces = (features[start : start + ROWS] for start in range(0, len(features), ROWS))
    return np.concatenate([((piece - mean) @ whitening).astype(np.float32) for piece in pieces])
