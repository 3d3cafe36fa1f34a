"""Projections of many directions onto the cone of labelled manifolds, by generating its rays as they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from manicap.diagnostics.samples import Floats

MAX_ROUNDS = 1000
CHANCES = 6
RIDGE = 1e-10
TOLERANCE = 1e-7
RAYS_PER_ROUND = 40
"""A round adds to each direction's problem about this many rays, and at least one of every manifold they violate."""


@dataclass
class ConeProjection:
    """The projection of one direction t: sum over j of weights[j] * sign * points[indices[j]]."""

    indices: NDArray[np.int64]
    weights: Floats
    """Positive."""


@dataclass
class _Problem:
    """min |Z^T x - t|^2 / 2 over x >= 0, Z the unit rays that this direction has met so far."""

    target: Floats
    indices: list[int] = field(default_factory=list)
    rays: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    gram: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    right: Floats = field(default_factory=lambda: np.zeros(0))
    solution: Floats = field(default_factory=lambda: np.zeros(0))

    def forget(self) -> None:
        """Drop the rays that carry no weight. The distance still falls in every round, so that none can repeat."""
        kept = np.flatnonzero(self.solution > 0)
        self.indices = [self.indices[j] for j in kept]
        self.rays, self.right, self.solution = self.rays[kept], self.right[kept], self.solution[kept]
        self.gram = self.gram[np.ix_(kept, kept)]

    def add(self, indices: Sequence[int], rays: Floats) -> None:
        across = rays @ self.rays.T if self.indices else np.zeros((len(rays), 0))
        within = rays @ rays.T + RIDGE * np.eye(len(rays))
        self.gram = np.block([[self.gram, across.T], [across, within]])
        self.rays = np.concatenate([self.rays, rays]) if self.indices else rays
        self.right = np.concatenate([self.right, rays @ self.target])
        self.solution = np.concatenate([self.solution, np.ones(len(rays))])  # a guess: all new rays carry weight
        self.indices.extend(indices)

    def solve(self) -> None:
        """Block principal pivoting from the last solution's positive entries; Lawson-Hanson where that fails.

        Pivoting solves for all positive entries at once, but may cycle if there are more rays than dimensions, which is
        the case near and beyond the end of separability.
        """
        solution = _pivot(self.gram, self.right, self.solution > 0)
        if solution is None:
            solution = nnls(self.rays.T, self.target, maxiter=30 * len(self.rays) + 1000)[0]
        self.solution = solution

    def residual(self) -> Floats:
        """t minus its projection onto the cone of these rays: the projection onto the polar cone."""
        if not self.indices:
            return self.target
        rest: Floats = self.target - self.solution @ self.rays
        return rest


def project_on_cones(
    points: Sequence[Floats], signs: NDArray[np.int64], targets: Floats
) -> tuple[list[ConeProjection], Floats]:
    """Project each row t of `targets` onto the cone of { y_i x : x in manifold i }, with y its row of `signs`.

    The projection solves min |sum_j w_j y_j x_j - t|^2 over w >= 0, and its residual v obeys y_i v . x <= 0 for every
    point. Few points carry weight, so that the problem is solved on few: those that the last residual violates most
    join it, manifold by manifold, until none is violated by more than 1e-7 |t|. All points are tried against all
    directions in one product. Returns the projections and their residuals [n, N].

    `points` holds one array [points, N] per manifold; `signs` is [n, manifolds], of 1 and -1. A point at the origin
    is no ray and never carries weight. Raises ArithmeticError if a problem does not converge.
    """
    lengths = [np.linalg.norm(x, axis=1) for x in points]
    units = np.concatenate([x / np.where(size > 0, size, 1)[:, None] for x, size in zip(points, lengths, strict=True)])
    starts = np.cumsum([0, *map(len, points)])
    manifold = np.repeat(np.arange(len(points)), np.diff(starts))
    problems = [_Problem(target) for target in targets]
    residuals = targets.copy()
    limits = TOLERANCE * np.linalg.norm(targets, axis=1)
    dimension = targets.shape[1]
    per_manifold = max(1, min(RAYS_PER_ROUND, dimension // 2) // len(points))
    left = np.arange(len(targets))
    for _ in range(MAX_ROUNDS):
        violations = units @ residuals[left].T
        still = []
        for column, draw in enumerate(left):
            problem, sign = problems[draw], signs[draw]
            new = _most_violated(violations[:, column] * sign[manifold], starts, limits[draw], per_manifold, problem)
            if new:
                if len(problem.indices) > dimension:
                    problem.forget()
                problem.add(new, units[new] * sign[manifold[new]][:, None])
                problem.solve()
                before, residuals[draw] = residuals[draw] @ residuals[draw], problem.residual()
                # A ray violated by d brings the direction closer by at least d^2: less is rounding.
                if before - residuals[draw] @ residuals[draw] > limits[draw] ** 2:
                    still.append(draw)
        left = np.array(still, dtype=np.int64)
        if not len(left):
            all_lengths = np.concatenate(lengths)
            return [_projection(problem, all_lengths) for problem in problems], residuals
    raise ArithmeticError(f"{len(left)} of {len(targets)} projections did not converge in {MAX_ROUNDS} rounds")


def _most_violated(
    violation: Floats, starts: NDArray[np.int64], limit: float, count: int, problem: _Problem
) -> list[int]:
    """Up to `count` points of every manifold with the largest violation above the limit, without those already met."""
    violation[problem.indices] = -np.inf
    found: list[int] = []
    for start, stop in pairwise(starts.tolist()):
        part = violation[start:stop]
        order = [int(part.argmax())] if count == 1 else np.argsort(-part, kind="stable")[:count].tolist()
        found += [start + index for index in order if part[index] > limit]
    return found


def _pivot(gram: Floats, right: Floats, positive: NDArray[np.bool_]) -> Floats | None:
    """x >= 0 with y = G x - b >= 0 and x y = 0: guess where x > 0, solve, exchange what has the wrong sign.

    None if the number of wrong signs stops falling, or the rays are not independent.
    """
    tolerance = TOLERANCE * max(float(np.abs(right).max()), np.finfo(np.float64).tiny)
    chances, fewest = CHANCES, len(right) + 1
    while chances > 0:
        chosen = np.flatnonzero(positive)
        x = np.zeros(len(right))
        if len(chosen):
            _, x[chosen], failed = dposv(gram[np.ix_(chosen, chosen)], right[chosen])
            if failed:
                return None
        wrong = np.where(positive, x, gram[:, chosen] @ x[chosen] - right) < -tolerance
        count = int(wrong.sum())
        if count == 0:
            return np.maximum(x, 0)
        chances, fewest = (CHANCES, count) if count < fewest else (chances - 1, fewest)
        positive = positive ^ wrong
    return None


def _projection(problem: _Problem, lengths: Floats) -> ConeProjection:
    carrying = np.flatnonzero(problem.solution > 0)
    indices = np.array(problem.indices, dtype=np.int64)[carrying]
    return ConeProjection(indices, problem.solution[carrying] / lengths[indices])
