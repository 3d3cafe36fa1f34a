"""How the capacity falls as more points of each manifold are seen, and its limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.effective_geometry import critical_dimensions
from manicap.diagnostics.manifolds import Labels, as_manifolds, in_own_span, labels_for_draws, symmetric_draws
from manicap.diagnostics.samples import Floats

FEWEST_POINTS = 4
"""Mean points per manifold of the smallest subsample."""
ORDERS = 4
"""Random orders in which the points are added; each serves a part of the draws."""
FEWEST_SIZES = 3
EXPONENTS = np.geomspace(0.05, 4.0, 80)
REPLICATES = 500
FLAT = 0.1
"""The trend has flattened if the limit is at most this fraction below the capacity of all points."""


@dataclass(frozen=True)
class CapacityTrend:
    points: tuple[float, ...]
    """Mean number of points per manifold, each about twice the last."""
    capacities: tuple[float, ...]
    limit: float | None
    """Capacity of infinitely many points, by the fitted law; None if it falls too evenly to have one, or too few points
    were given."""
    interval: tuple[float, float] | None
    """95 % interval of the limit, over draws and orders of the points; 0 is no limit."""

    @property
    def has_flattened(self) -> bool:
        return self.limit is not None and self.limit >= (1 - FLAT) * self.capacities[-1]

    @property
    def warning(self) -> str | None:
        """A sentence if the capacity of all points is not yet that of the manifolds; None if it is."""
        measured, points = self.capacities[-1], self.points[-1]
        if self.has_flattened:
            return None
        if len(self.points) < FEWEST_SIZES:
            return f"too few points for a trend: {points:.0f} per manifold; the capacity {measured:.3g} is too high"
        if self.limit is None or self.interval is None:
            return f"the capacity, {measured:.3g} with {points:.0f} points per manifold, has no limit in sight"
        low, high = self.interval
        return (
            f"the capacity has not flattened: {measured:.3g} with {points:.0f} points per manifold, on its way to"
            f" {self.limit:.3g} (95 % interval {low:.3g} to {high:.3g})"
        )


def capacity_trend(
    manifolds: Sequence[NDArray[Any]],
    generator: np.random.Generator,
    labels: Labels | None = None,
    num_draws: int = 80,
    num_sizes: int = 4,
    centered: bool = True,
) -> CapacityTrend:
    """Capacity as in `glue` of nested subsamples of the points, m, 2 m, 4 m, ..., all, and its limit.

        trend = capacity_trend([features[labels == k] for k in classes], np.random.default_rng(0))
        trend.capacities, trend.limit, trend.interval, trend.warning

    Fewer points span a smaller hull, which is easier to separate: the bias has one sign. The hull of m random points on
    a smooth body in D dimensions stays below its surface by about m^(-2 / (D - 1)), so that the law fitted is

        1 / capacity(m) = 1 / limit - b m^-g        b >= 0,  g from 0.05 to 4

    by least squares. The smallest g means that every doubling of the points adds as much as the last, or more: then no
    limit is in sight (a Gaussian's hull grows forever, and points fewer than their dimensions each add a corner).

    All sizes see the same directions and labels. The interval is that of 500 bootstrap samples of the draws, which
    carry 4 random orders of the points; it does not account for deviations from the law, nor for these points being
    a sample themselves.
    """
    if num_sizes < FEWEST_SIZES:
        raise ValueError(f"num_sizes must be at least {FEWEST_SIZES}, got {num_sizes}")
    points = in_own_span(as_manifolds(manifolds, centered))
    counts = np.array([len(x) for x in points])
    fractions = [0.5**level for level in reversed(range(num_sizes))]
    fractions = [f for f in fractions if f == 1 or f * counts.mean() >= FEWEST_POINTS]
    draws = symmetric_draws(generator, num_draws, points[0].shape[1])
    half = labels_for_draws(labels, len(points), num_draws // 2, generator)
    signs = np.concatenate([half, half])
    orders = [[generator.permutation(count) for count in counts] for _ in range(ORDERS)]
    needed = np.empty((num_draws, len(fractions)))
    for place, fraction in enumerate(fractions):
        for number, order in enumerate(orders):
            mine = np.arange(num_draws) % (num_draws // 2) % ORDERS == number  # t and -t meet the same order
            if mine.any():
                sizes = _sizes(counts, fraction)
                some = [x[np.sort(rows[:size])] for x, rows, size in zip(points, order, sizes, strict=True)]
                needed[mine, place] = critical_dimensions(some, signs[mine], draws[mine])
    per_manifold = needed.reshape(2, -1, len(fractions)).mean(0) / len(points)
    means = np.array([_sizes(counts, fraction).mean() for fraction in fractions])
    capacities = 1 / per_manifold.mean(0)
    found = _limit(means, per_manifold, generator) if len(means) >= FEWEST_SIZES else (None, None)
    return CapacityTrend(tuple(means.tolist()), tuple(capacities.tolist()), *found)


def _sizes(counts: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    return np.maximum(1, np.rint(fraction * counts)).astype(np.int64)


def _limit(
    points: Floats, inverse: Floats, generator: np.random.Generator
) -> tuple[float | None, tuple[float, float] | None]:
    """The limit of the capacity and its interval, from the inverse capacity [draws, sizes]; None if there is none."""
    rows = generator.integers(0, len(inverse), (REPLICATES, len(inverse)))
    samples = np.concatenate([inverse.mean(0)[None], inverse[rows].mean(1)])
    limits = 1 / _extrapolate(points, samples)
    if limits[0] == 0:
        return None, None
    low, high = np.quantile(limits[1:], (0.025, 0.975))
    return float(limits[0]), (float(low), float(high))


def _extrapolate(points: Floats, inverse: Floats) -> Floats:
    """q of the best  q - b m^-g  with b >= 0, per row of inverse capacities [n, sizes]; infinite at the least g."""
    best, found = np.full(len(inverse), np.inf), inverse.mean(1)
    for exponent in EXPONENTS:
        power = (points / points[-1]) ** -exponent
        slope = np.minimum((inverse - inverse.mean(1, keepdims=True)) @ (power - power.mean()), 0)
        slope = slope / ((power - power.mean()) ** 2).sum()
        start = inverse.mean(1) - slope * power.mean()
        error = ((inverse - start[:, None] - np.outer(slope, power)) ** 2).sum(1)
        better = error < best
        is_limit = (slope == 0) | (exponent > EXPONENTS[0])
        best[better], found[better] = error[better], np.where(is_limit, start, np.inf)[better]
    return found
