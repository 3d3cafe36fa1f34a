"""Capacity of labelled groups of points by mean-field theory (Chung, Lee and Sompolinsky 2018, Phys. Rev. X 8, 031003).

    table = manifold_capacity([features[labels == k] for k in classes], generator)
    table.capacity, table.radius, table.dimension

A group of points with its convex hull is a manifold. Its capacity is the number of such manifolds, per dimension, up to
which a hyperplane can separate a random half of them from the rest: 2 for isolated points, less for extended manifolds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.nonnegative import solve_nonnegative
from manicap.diagnostics.samples import Floats, as_samples


@dataclass(frozen=True)
class ManifoldCapacity:
    """One entry per manifold, and their means."""

    capacities: Floats
    radii: Floats
    """Root mean squared length of the anchor points, in units of the centre's length."""
    dimensions: Floats
    """Dimension of the anchor points, as seen from a random direction."""

    @property
    def capacity(self) -> float:
        """1 / mean(1 / capacity): the capacity of a mixture of these manifolds."""
        return float(1 / np.mean(1 / self.capacities))

    @property
    def radius(self) -> float:
        return float(self.radii.mean())

    @property
    def dimension(self) -> float:
        return float(self.dimensions.mean())


def manifold_capacity(
    manifolds: Sequence[NDArray[Any]],
    generator: np.random.Generator,
    num_draws: int = 200,
    margin: float = 0.0,
) -> ManifoldCapacity:
    """Capacity, radius and dimension of each manifold, given as one array [points, D] each.

    The mean of the manifolds' centres is subtracted; the length of each manifold's centre is then its unit.
    With s the points around the centre in that unit, S = (s, 1), and T = (t, t_0) standard normal:

        F(T)   = min over V of |V - T|^2  such that  V . S + margin <= 0 for every point
        1 / capacity = E F(T)
        anchor s~(T): the point of the hull that V - T is opposite to
        radius^2  = E |s~|^2,    dimension = E (t . s~ / |s~|)^2

    V = T - sum_i x_i S_i with x >= 0 the solution of the dual problem; without a margin F is the squared length of
    T's projection onto the cone of the S_i. Draws come in pairs (T, -T) and each axis is scaled to variance 1, so that
    an isolated point has capacity exactly 2. Draws whose constraints already hold (x = 0) have no anchor and count
    only in F. Deviations: correlations between the centres are not removed, as the theory's simplest form assumes.
    """
    if num_draws < 2 or num_draws % 2:
        raise ValueError(f"num_draws must be even and at least 2, got {num_draws}")
    points = [as_samples(x, f"manifold {i}", at_least=1) for i, x in enumerate(manifolds)]
    if len(points) < 2 or len({x.shape[1] for x in points}) != 1:
        raise ValueError("manifold_capacity needs at least 2 manifolds in one space")
    centre = np.mean([x.mean(0) for x in points], axis=0)
    shapes = [_shape(x - centre, index) for index, x in enumerate(points)]
    measured = [_measure(shape, _draw(generator, num_draws, shape.shape[1]), margin) for shape in shapes]
    return ManifoldCapacity(*(np.array(values) for values in zip(*measured, strict=True)))


def _shape(points: Floats, index: int) -> Floats:
    """Points around their centre, in units of its length and in a basis of their own span, with a last column of 1."""
    centre = points.mean(0)
    length = np.linalg.norm(centre)
    around = points - centre
    if length <= 1e-12 * max(1.0, float(np.abs(points).max())):
        raise ValueError(f"the centre of manifold {index} is the mean of all centres: its capacity is undefined")
    reduced: Floats = np.linalg.qr(around.T)[1].T if len(points) > 1 else np.zeros((1, 0))
    return np.column_stack([reduced / length, np.ones(len(points))])


def _draw(generator: np.random.Generator, num_draws: int, dimension: int) -> Floats:
    half = generator.standard_normal((num_draws // 2, dimension))
    half /= np.sqrt((half**2).mean(0))
    return np.concatenate([half, -half])


def _measure(shape: Floats, draws: Floats, margin: float) -> tuple[float, float, float]:
    """1 / E F, radius and dimension of one manifold."""
    weights = solve_nonnegative(shape @ shape.T, shape @ draws.T + margin).T
    change = weights @ shape
    inverse_capacity = (change**2).sum(1).mean()
    total = weights.sum(1)
    touched = total > 0
    anchors = change[touched, :-1] / total[touched, None]
    lengths = np.linalg.norm(anchors, axis=1)
    along = (draws[touched, :-1] * anchors).sum(1) / np.where(lengths > 0, lengths, 1)
    if not touched.any():
        return float(1 / inverse_capacity), 0.0, 0.0
    return float(1 / inverse_capacity), float(np.sqrt((lengths**2).mean())), float((along**2).mean())
