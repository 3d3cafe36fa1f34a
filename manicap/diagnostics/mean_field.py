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

from manicap.diagnostics.cones import project_on_cones
from manicap.diagnostics.manifolds import as_manifolds, group_without_centre, in_own_span
from manicap.diagnostics.samples import Floats, unit_rows

LEAST_REST = 1e-3
"""What must be left of each centre, as a fraction of its length, when shared directions are removed."""


@dataclass(frozen=True)
class ManifoldCapacity:
    """One entry per manifold, and their means."""

    capacities: Floats
    radii: Floats
    """Root mean squared length of the anchor points, in units of the centre's length."""
    dimensions: Floats
    """Dimension of the anchor points, as seen from a random direction."""
    shared: int = 0
    """Directions that the centres share, which were removed before anything was measured."""
    shared_dimensions: float = 0.0
    """What these directions add to the dimensions that all manifolds together require; negative if they help."""

    @property
    def capacity(self) -> float:
        """P / (sum over manifolds of 1 / capacity, plus what the shared directions add)."""
        return float(len(self.capacities) / (np.sum(1 / self.capacities) + self.shared_dimensions))

    @property
    def radius(self) -> float:
        return float(self.radii.mean())

    @property
    def dimension(self) -> float:
        return float(self.dimensions.mean())


@dataclass(frozen=True)
class _Measured:
    """Means over the draws of one manifold."""

    needed: float
    """E F, the inverse capacity."""
    radius: float
    dimension: float
    centre_squared: float
    """E p^2, p the projection's component along the centre."""
    centre_field: float
    """E p t_0."""


def manifold_capacity(
    manifolds: Sequence[NDArray[Any]],
    generator: np.random.Generator,
    num_draws: int = 200,
    correct_centres: bool = True,
) -> ManifoldCapacity:
    """Capacity, radius and dimension of each manifold, given as one array [points, N] each.

    The mean of the manifolds' centres is subtracted; the length of each manifold's centre is then its unit. With s the
    points around the centre, in that unit and in a basis of the space they span, S = (s, 1) and T = (t, t_0) standard
    normal:

        F(T)   = |projection of T onto the cone of the S|^2 = min over V of |V - T|^2 with V . S <= 0 for every point
        1 / capacity = E F(T)                               the statistical dimension of the cone
        anchor s~(T): the mean of the points that V touches, weighted by their multipliers
        radius^2  = E |s~|^2,    dimension = E (t . s~ / |s~|)^2

    Every draw has an anchor. If V = T touches nothing, it is the point that a margin would touch first, the largest
    t . s; counting only draws that touch would give a segment a dimension that depends on its length, and so would a
    basis of more directions than the manifold has. Draws come in pairs (T, -T) and each axis is scaled to variance 1:
    an isolated point has capacity 2 and a segment dimension 1, exactly.

    Correlated centres (`correct_centres`). Adding up manifolds assumes orthogonal centres. Let U be the k first
    principal directions of the centres, with the k that makes the mean squared cosine between what is left of two
    centres least, after Cohen, Chung, Lee and Sompolinsky (2020, Nat. Commun. 11, 746). Measured without U, the
    manifolds need sum_i E F_i dimensions. A classifier may also use its k weights w along U: they move manifold i by
    f_i = y_i A_i . w at no cost, A_i its centre in U over the length of what is left. To second order in w, with p the
    component of a projection along the centre, dF/df = 2 p and E d^2F/df^2 = 2 E p t_0 (Stein), so that random labels
    leave

        sum_i E F_i + k - tr( (sum_i A_i A_i^T E p_i t_0)^-1 (sum_i A_i A_i^T E p_i^2) )       dimensions.

    For points p^2 = p t_0: the trace is k and the capacity stays 2, as Cover's theorem requires.

    Deviations: the trace is ours; Cohen et al. leave out U, which is its limit for k much less than P. U is spanned by
    principal directions, not by an iterative fit.
    """
    if num_draws < 2 or num_draws % 2:
        raise ValueError(f"num_draws must be even and at least 2, got {num_draws}")
    points = in_own_span(as_manifolds(manifolds))
    if (index := group_without_centre(points)) is not None:
        raise ValueError(f"the centre of manifold {index} is the mean of all centres: its capacity is undefined")
    centres = np.stack([x.mean(0) for x in points])
    basis = shared_directions(centres) if correct_centres else centres[:0]
    rest = [x - (x @ basis.T) @ basis for x in points]
    rest_centres = np.stack([x.mean(0) for x in rest])
    lengths = np.linalg.norm(rest_centres, axis=1)
    measured = [
        _measure((x - centre) / length, generator, num_draws)
        for x, centre, length in zip(rest, rest_centres, lengths, strict=True)
    ]
    return ManifoldCapacity(
        np.array([1 / each.needed for each in measured]),
        np.array([each.radius for each in measured]),
        np.array([each.dimension for each in measured]),
        len(basis),
        _added_dimensions(centres @ basis.T / lengths[:, None], measured),
    )


def shared_directions(centres: Floats) -> Floats:
    """An orthonormal basis [k, N] of what the centres share; k may be 0, and is at most half of the centres."""
    directions = np.linalg.svd(centres, full_matrices=False)[2]
    P = len(centres)
    best, fewest = np.inf, 0
    for k in range((P - 1) // 2 + 1):
        rest = centres - (centres @ directions[:k].T) @ directions[:k]
        if not (np.linalg.norm(rest, axis=1) > LEAST_REST * np.linalg.norm(centres, axis=1)).all():
            break
        cosines = unit_rows(rest) @ unit_rows(rest).T
        squared = float((cosines[~np.eye(P, dtype=bool)] ** 2).mean())
        # Rounding must not decide between equals: one more direction has to pay.
        if squared < best * (1 - 1e-9):
            best, fewest = squared, k
    return directions[:fewest]


def _added_dimensions(shares: Floats, measured: Sequence[_Measured]) -> float:
    k = shares.shape[1]
    if k == 0:
        return 0.0
    squared = np.array([each.centre_squared for each in measured])
    field = np.array([each.centre_field for each in measured])
    gain = np.linalg.solve((shares.T * field) @ shares, (shares.T * squared) @ shares)
    return float(k - np.trace(gain))


def _measure(around: Floats, generator: np.random.Generator, num_draws: int) -> _Measured:
    """One manifold, given by its points around the centre in units of the centre's length."""
    left, values, _ = np.linalg.svd(around, full_matrices=False)
    rank = int((values > 1e-10 * max(1.0, float(values[0]))).sum())
    shape = np.column_stack([left[:, :rank] * values[:rank], np.ones(len(around))])
    half = generator.standard_normal((num_draws // 2, rank + 1))
    half /= np.sqrt((half**2).mean(0))
    draws = np.concatenate([half, -half])
    projections, residuals = project_on_cones([shape], np.ones((num_draws, 1), dtype=np.int64), draws)
    projected = draws - residuals
    anchors = np.empty((num_draws, rank))
    for row, (found, draw) in enumerate(zip(projections, draws, strict=True)):
        weights = found.weights
        touched = weights @ shape[found.indices, :-1] / weights.sum() if len(weights) else None
        anchors[row] = shape[np.argmax(shape[:, :-1] @ draw[:-1]), :-1] if touched is None else touched
    sizes = np.linalg.norm(anchors, axis=1)
    along = (draws[:, :-1] * anchors).sum(1) / np.where(sizes > 0, sizes, 1)
    return _Measured(
        needed=float((projected**2).sum(1).mean()),
        radius=float(np.sqrt((sizes**2).mean())),
        dimension=float((along**2).mean()),
        centre_squared=float((projected[:, -1] ** 2).mean()),
        centre_field=float((projected[:, -1] * draws[:, -1]).mean()),
    )
