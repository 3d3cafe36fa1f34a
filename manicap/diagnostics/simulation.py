"""Manifold capacity by simulation: in how many random dimensions do labelled manifolds become separable?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.cones import project_on_cones
from manicap.diagnostics.manifolds import Labels, as_manifolds, in_own_span, labels_for_draws
from manicap.diagnostics.samples import Floats, unit_rows

OUTSIDE = 1e-12
"""A squared distance from a cone, as a fraction of the squared length, that counts as outside."""


@dataclass(frozen=True)
class SimulatedCapacity:
    capacity: float
    standard_error: float
    """Of the capacity, over the draws."""
    dimensions: Floats
    """For each draw, the number of dimensions at which its labels become separable; N + 1/2 if they never do, N
    those that the points span."""


def simulated_capacity(
    manifolds: Sequence[NDArray[Any]],
    generator: np.random.Generator,
    labels: Labels | None = None,
    num_draws: int = 50,
    centered: bool = True,
) -> SimulatedCapacity:
    """The capacity of P manifolds, one array [points, N] each, found without theory.

        simulated_capacity([features[labels == k] for k in classes], np.random.default_rng(0)).capacity

    Each draw labels the manifolds (at random, or with `labels` in turn) and projects them to 1, 2, ..., N random
    dimensions, each adding one to the last. n is the first number of dimensions in which a hyperplane through the
    origin separates the labels, found by bisection.

        capacity = P / (E n - 1/2)

    Why one half: let C be the cone of weights v with y_i v . x >= 0 for all points, v_j its conic intrinsic volumes
    (Amelunxen, Lotz, McCoy and Tropp 2014, Inf. Inference 3) and d = sum j v_j its statistical dimension. A random
    subspace of n dimensions meets C with probability 2 (v_k + v_(k+2) + ...), k = N - n + 1 (conic Crofton formula).
    Summed over n, with half of the volumes at odd j (Gauss-Bonnet), this gives E n = N - d + 1/2; and N - d, the
    statistical dimension of the polar cone, is E |t - v|^2 of `glue`. So the two agree in expectation at every P and N.
    For isolated points (N >= P) n - 1 is binomial, (P - 1, 1/2), by Cover's count: E n - 1/2 = P / 2, half of all
    labels are separable in P / 2 dimensions, and the capacity is 2.
    """
    points = in_own_span(as_manifolds(manifolds, centered))
    P, N = len(points), points[0].shape[1]
    if num_draws < 2:
        raise ValueError(f"num_draws must be at least 2, got {num_draws}")
    signs = labels_for_draws(labels, P, num_draws, generator)
    found = np.array([_first_dimension(points, y, generator.standard_normal((N, N))) for y in signs])
    needed = found.mean() - 0.5
    error = found.std(ddof=1) / np.sqrt(num_draws)
    return SimulatedCapacity(float(P / needed), float(P * error / needed**2), found)


def is_separable(points: Sequence[Floats], signs: NDArray[np.int64]) -> bool:
    """Whether some w has y_i w . x >= 0 for every point x of every manifold i, and not 0 for all of them.

    Let K be the cone of all y_i x, and t the negative of their sum. If such a w exists, w . t < 0, and t is outside K;
    otherwise K holds the negative of each of its points, and t. So the distance of t from K decides. Points in general
    position are then separated strictly, but for a set of projections of probability zero.
    """
    target = -sum(y * unit_rows(x).sum(0) for y, x in zip(signs, points, strict=True))
    residual = project_on_cones(points, signs[None], np.asarray(target)[None])[1][0]
    return bool(residual @ residual > OUTSIDE * (target @ target))


def _first_dimension(points: Sequence[Floats], signs: NDArray[np.int64], directions: Floats) -> float:
    rows = [x @ directions for x in points]
    fails, holds = 0, directions.shape[1]
    if not is_separable(rows, signs):
        return holds + 0.5
    while holds - fails > 1:
        middle = (fails + holds) // 2
        if is_separable([x[:, :middle] for x in rows], signs):
            holds = middle
        else:
            fails = middle
    return float(holds)
