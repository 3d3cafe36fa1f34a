"""Neural collapse: how small the variation within classes is, relative to the distances between their means."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.manifolds import as_manifolds


def neural_collapse(manifolds: Sequence[NDArray[Any]]) -> float:
    """NC1 of K classes, one array [points, N] each (Papyan, Han and Donoho 2020, PNAS 117, 24652): 0 at collapse.

        neural_collapse([features[labels == k] for k in classes])

        S_W = mean over classes of their covariance,   S_B = covariance of the class means
        NC1 = tr(S_W S_B^+) / K

    Only variation along the differences of means counts. Deviations: classes weigh equally, whatever their size.
    """
    points = as_manifolds(manifolds)
    means = np.stack([x.mean(0) for x in points])
    _, values, directions = np.linalg.svd(means / np.sqrt(len(means)), full_matrices=False)
    keep = values > 1e-10 * values[0]
    if not values[0] > 0:
        return float("inf")
    scaled = directions[keep] / values[keep, None]
    within = [(((x - mean) @ scaled.T) ** 2).sum(1).mean() for x, mean in zip(points, means, strict=True)]
    return float(np.mean(within) / len(points))
