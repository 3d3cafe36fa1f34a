"""What the measures of manifold capacity require: groups of points in one space, around a common centre."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import Floats, as_samples

Labels = NDArray[Any] | Sequence[int] | Sequence[Sequence[int]]
"""1 or -1 per manifold, or several rows of them."""
DEAD = 1e-7
"""Points that extend less than this in a direction, relative to their longest one, do not extend in it: features are
float32, exact to 6e-8, and projections on cones leave violations of 1e-7. Squares are exact to 1e-15."""


def as_manifolds(manifolds: Sequence[NDArray[Any]], centered: bool = True) -> list[Floats]:
    """One float64 array [points, N] per manifold; `centered` subtracts the mean of their centres."""
    points = [as_samples(x, f"manifold {i}", at_least=1) for i, x in enumerate(manifolds)]
    if len(points) < 2 or len({x.shape[1] for x in points}) != 1:
        raise ValueError(f"needs at least 2 manifolds in one space, got widths {[x.shape[1] for x in points]}")
    if not centered:
        return points
    centre = np.mean([x.mean(0) for x in points], axis=0)
    return [x - centre for x in points]


def group_without_centre(points: Sequence[Floats]) -> int | None:
    """The first manifold whose centre is the origin, up to rounding; None if there is none."""
    scale = max(float(np.abs(x).max()) for x in points)
    lengths = np.array([np.linalg.norm(x.mean(0)) for x in points])
    (found,) = np.nonzero(lengths <= 1e-12 * np.sqrt(points[0].shape[1]) * scale)
    return int(found[0]) if len(found) else None


def in_own_span(points: Sequence[Floats]) -> list[Floats]:
    """The same manifolds in coordinates of the space they span, if that is smaller; all their angles are unchanged.

    In a direction without points any t lies outside of their cone: labels that nothing separates would be separable.
    """
    stacked = np.concatenate(points)
    if len(stacked) < stacked.shape[1]:
        # R of Q R = X^T; NumPy's types do not know that mode "r" returns it alone.
        stacked = np.asarray(np.linalg.qr(stacked.T, mode="r")).T
    squares, directions = np.linalg.eigh(stacked.T @ stacked)
    alive = squares >= DEAD**2 * squares[-1]
    if not alive.all():
        stacked = stacked @ directions[:, alive]
    return np.split(stacked, np.cumsum([len(x) for x in points])[:-1])


def symmetric_draws(generator: np.random.Generator, num_draws: int, dimension: int) -> Floats:
    """Random directions [num_draws, dimension] in pairs (t, -t), all of length sqrt(dimension).

    What is measured grows with |t|^2, whose mean over standard normal t is the dimension: fixing it leaves the mean of
    the measure and removes part of its noise.
    """
    if num_draws < 2 or num_draws % 2:
        raise ValueError(f"num_draws must be even and at least 2, got {num_draws}")
    half = generator.standard_normal((num_draws // 2, dimension))
    half *= np.sqrt(dimension) / np.linalg.norm(half, axis=1, keepdims=True)
    return np.concatenate([half, -half])


def labels_for_draws(
    labels: Labels | None, num_manifolds: int, num_draws: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Signs [num_draws, manifolds]: the given labels in turn, or random ones."""
    if labels is None:
        return 2 * generator.integers(0, 2, (num_draws, num_manifolds)) - 1
    given = np.atleast_2d(np.asarray(labels))
    if given.ndim != 2 or given.shape[1] != num_manifolds or not np.isin(given, (-1, 1)).all():
        raise ValueError(f"labels must be 1 or -1 for each of {num_manifolds} manifolds, got shape {list(given.shape)}")
    return given.astype(np.int64)[np.arange(num_draws) % len(given)]
