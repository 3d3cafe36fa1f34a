"""GLUE: capacity of given manifolds under given or random labels, with the geometry that explains it.

Chou, Kim, Arend, Yang, Mensh, Shim, Perich and Chung, "Geometry Linked to Untangling Efficiency" (bioRxiv
2024.02.26.582157); Chou, Le, Wang and Chung (arXiv 2503.18114); decomposition with the utility as in arXiv 2603.01879.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.cones import ConeProjection, project_on_cones
from manicap.diagnostics.manifolds import Labels, as_manifolds, in_own_span, labels_for_draws, symmetric_draws
from manicap.diagnostics.samples import Floats, unit_rows

INSEPARABLE = 1e-10
"""Labels with a residual below this fraction of |t|^2 cannot be separated in any number of dimensions."""


@dataclass(frozen=True)
class Glue:
    """capacity = utility (1 + radius^-2) / dimension, exactly."""

    capacity: float
    """Manifolds per dimension that can be separated under these labels."""
    standard_error: float
    """Of the capacity, over the draws."""
    dimension: float
    """Directions in which a manifold's anchor points vary, as the classifier sees it."""
    radius: float
    """Size of that variation relative to the manifold's centre."""
    utility: float
    """Share of the critical dimension that the variation within manifolds explains: near 1 for large manifolds."""
    centre_alignment: float
    """Mean absolute cosine between the centres of two manifolds: 0 if they are orthogonal, 1 if they coincide."""
    axis_alignment: float
    """Mean absolute cosine between the variations of two manifolds."""
    centre_axis_alignment: float
    """Mean absolute cosine between the centre of one manifold and the variation of another."""
    separable: float
    """Fraction of the labels drawn that a hyperplane separates in the space that the points span."""


def glue(
    manifolds: Sequence[NDArray[Any]],
    generator: np.random.Generator,
    labels: Labels | None = None,
    num_draws: int = 200,
    centered: bool = True,
) -> Glue:
    """Capacity and effective geometry of manifolds, one array [points, N] each.

        found = glue([features[labels == k] for k in classes], np.random.default_rng(0))
        found.capacity, found.dimension, found.radius, found.utility

    With t standard normal in R^N and labels y, all P manifolds are solved for together:

        v(t, y)      = argmin over v of |v - t|^2  such that  y_i v . x <= 0  for every point x of every manifold i
        capacity     = P / E |t - v|^2                t - v: the projection of t onto the cone of all y_i x
        anchor s_i   = the mean of manifold i's points, weighted by their multipliers

    E |t - v|^2 is the statistical dimension of the cone, and that is exactly the number of random projections at which
    these labels become separable: `simulated_capacity` explains why. Correlations of the centres may be arbitrary.

    Anchors split into centres s0_i = E s_i and axes s1_i = s_i - s0_i; S0 and S1 have them as rows, signed by y. With
    ^+ the pseudo-inverse,

        b = (S1 t)^T (S1 S1^T)^+ (S1 t)               c = (S1 t)^T (S0 S0^T + S1 S1^T)^+ (S1 t)
        dimension = E b / P     radius^2 = E c / E (b - c)     utility = E c / E |t - v|^2

    so that capacity = utility (1 + radius^-2) / dimension. For spheres with orthogonal axes and centres, b is the
    squared length of t within the spheres' own directions: the dimension is theirs. Single points have dimension 0 and
    radius 0.

    `labels` is None for random ones, or [P] or [number, P] of 1 and -1, used in turn. Draws come in pairs (t, -t) of
    fixed length. `centered` subtracts the mean of the centres, which stands for a classifier's bias.

    Deviations. The published equations were read from secondary sources. They leave open the anchor of a manifold of
    which no constraint is active at v (about half of all small manifolds). Here it is the point nearest to the
    hyperplane, the first that a margin would touch. Alignments are cosines; published ones are also given without
    division by the lengths.
    """
    points = in_own_span(as_manifolds(manifolds, centered))
    P, N = len(points), points[0].shape[1]
    draws = symmetric_draws(generator, num_draws, N)
    half = labels_for_draws(labels, P, num_draws // 2, generator)
    signs = np.concatenate([half, half])
    projections, residuals = project_on_cones(points, signs, draws)
    lengths = (residuals**2).sum(1)
    needed = N - lengths
    pairs = needed.reshape(2, -1).mean(0)
    error = float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else float("nan")
    anchors = [_anchors(points, *each) for each in zip(projections, residuals, signs, strict=True)]
    mean_needed = float(pairs.mean())
    return Glue(
        capacity=P / mean_needed,
        standard_error=P * error / mean_needed**2,
        separable=float((lengths.reshape(2, -1).sum(0) > INSEPARABLE * N).mean()),  # t or -t is outside of the cone
        **_geometry(np.mean(anchors, axis=0), anchors, draws, mean_needed),
    )


def critical_dimensions(points: Sequence[Floats], signs: NDArray[np.int64], draws: Floats) -> Floats:
    """|t - v|^2 of every draw: the capacity is the number of manifolds over its mean."""
    residuals = project_on_cones(points, signs, draws)[1]
    needed: Floats = (draws**2).sum(1) - (residuals**2).sum(1)
    return needed


def _anchors(points: Sequence[Floats], projection: ConeProjection, residual: Floats, sign: NDArray[np.int64]) -> Floats:
    """[P, N]: where the classifier touches each manifold, or would touch it first."""
    starts = np.cumsum([0, *map(len, points)])
    owner = np.searchsorted(starts, projection.indices, side="right") - 1
    anchors = np.empty((len(points), len(residual)))
    for i, x in enumerate(points):
        mine = owner == i
        if mine.any():
            weights = projection.weights[mine]
            anchors[i] = weights @ x[projection.indices[mine] - starts[i]] / weights.sum()
        else:
            anchors[i] = x[np.argmax(sign[i] * (x @ residual))]
    return anchors


def _geometry(centres: Floats, anchors: Sequence[Floats], draws: Floats, needed: float) -> dict[str, float]:
    """Dimension, radius, utility and the three alignments. The labels cancel: a quadratic form keeps no sign."""
    P = len(centres)
    centre_gram, unit_centres = centres @ centres.T, unit_rows(centres)
    within, both, axis_cosines, cross_cosines = [], [], [], []
    for anchor, draw in zip(anchors, draws, strict=True):
        axes = anchor - centres
        field, gram = axes @ draw, axes @ axes.T
        floor = 1e-10 * max(float(np.trace(gram + centre_gram)), np.finfo(np.float64).tiny)
        within.append(_quadratic(gram, field, floor))
        both.append(_quadratic(gram + centre_gram, field, floor))
        unit_axes = unit_rows(axes)
        axis_cosines.append(np.abs(unit_axes @ unit_axes.T))
        cross_cosines.append(np.abs(unit_centres @ unit_axes.T))
    b, c = float(np.mean(within)), float(np.mean(both))
    others = ~np.eye(P, dtype=bool)
    return {
        "dimension": b / P,
        "radius": float(np.sqrt(c / (b - c))) if b > c else 0.0,
        "utility": c / needed,
        "centre_alignment": float(np.abs(unit_centres @ unit_centres.T)[others].mean()),
        "axis_alignment": float(np.mean(axis_cosines, axis=0)[others].mean()),
        "centre_axis_alignment": float(np.mean(cross_cosines, axis=0)[others].mean()),
    }


def _quadratic(gram: Floats, field: Floats, floor: float) -> float:
    """field^T gram^+ field; eigenvalues below the floor count as zero."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > floor
    return float(((vectors.T @ field)[keep] ** 2 / values[keep]).sum())
