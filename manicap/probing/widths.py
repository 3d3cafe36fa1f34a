"""Scores by width: how many directions of the features hold what a probe reads, with all labels.

Two ways to reduce features to k directions: their k principal components, and k random orthogonal directions.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from manicap.core.seeding import numpy_generator
from manicap.probing.labelled import LabelledFrames
from manicap.probing.ridge import GrowingRidge, RidgeFit

WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
LEAST_VARIANCE = 1e-7
"""Principal directions with a smaller share of the largest variance are left out."""
SPARE, ITERATIONS = 64, 6
"""Of the subspace iteration: further directions, and how often the covariance is applied."""


def principal_directions(
    frames: LabelledFrames, problem: GrowingRidge | None, everything: bool, seed: int
) -> tuple[Tensor, Tensor]:
    """Orthonormal directions [F, R] of the standardised features and the variances along them [R], largest first.

    All of them, or the leading ones that widths need. `problem` has the sums over all frames if these are more than the
    features.
    """
    if problem is not None:
        covariance = problem.covariance()
        if not everything and len(covariance) > 2 * WIDTHS[-1]:
            small = covariance.float()
            return _leading(lambda q: small @ q, len(small), seed)
        variances, directions = torch.linalg.eigh(covariance.float())
        return directions[:, _kept(variances)].flip(1), variances[_kept(variances)].flip(0)
    z = frames.take(frames.all_rows()).z
    z = z - z.mean(0)
    if not everything and min(z.shape) > 2 * WIDTHS[-1]:
        return _leading(lambda q: z.T @ (z @ q) / len(z), z.shape[1], seed)
    if z.shape[1] <= len(z):
        variances, directions = torch.linalg.eigh((z.T @ z / len(z)).double())
        return directions[:, _kept(variances)].flip(1).float(), variances[_kept(variances)].flip(0).float()
    variances, left = torch.linalg.eigh((z @ z.T / len(z)).double())
    kept = _kept(variances)
    directions = z.T @ (left[:, kept] / (len(z) * variances[kept]).sqrt()).float()
    return directions.flip(1), variances[kept].flip(0).float()


def _leading(covariance_times: Callable[[Tensor], Tensor], num_features: int, seed: int) -> tuple[Tensor, Tensor]:
    """The leading directions by subspace iteration (Halko, Martinsson, Tropp 2011, algorithm 4.4)."""
    drawn = numpy_generator(seed, "subspace").standard_normal((num_features, WIDTHS[-1] + SPARE), np.float32)
    subspace = torch.linalg.qr(torch.from_numpy(drawn)).Q
    for _ in range(ITERATIONS):
        subspace = torch.linalg.qr(covariance_times(subspace)).Q
    variances, within = torch.linalg.eigh((subspace.T @ covariance_times(subspace)).double())
    directions = (subspace @ within.float()).flip(1)[:, : WIDTHS[-1]]
    return directions, variances.flip(0)[: WIDTHS[-1]].float()


def _kept(variances: Tensor) -> Tensor:
    """Which of ascending variances are not nearly 0; none of none."""
    return variances > LEAST_VARIANCE * variances[-1:].clamp_min(torch.finfo(variances.dtype).tiny)


def random_directions(num_features: int, seed: int) -> Tensor:
    """Orthonormal [F, k] for the largest width; the first columns serve a smaller one."""
    rng = numpy_generator(seed, "random directions")
    drawn = torch.from_numpy(rng.standard_normal((num_features, min(num_features, WIDTHS[-1])), np.float32))
    return torch.linalg.qr(drawn).Q


def fit_widths(frames: LabelledFrames, directions: Tensor, num_targets: int) -> dict[int, RidgeFit]:
    """Regressions of the first targets from the first k directions, by k; their weights are those of all features."""
    directions = directions[:, : WIDTHS[-1]]
    problem = GrowingRidge(directions.shape[1], num_targets, 1.0)
    reduced: list[tuple[Tensor, Tensor, Tensor]] = []
    for z, y, folds in frames.pieces(frames.all_rows()):
        reduced.append((z @ directions, y[:, :num_targets], torch.from_numpy(folds)))
        problem.add(*reduced[-1][:2], folds)
    groups, found = torch.arange(num_targets), {}
    for k in (width for width in WIDTHS if width <= directions.shape[1]):
        narrow = problem.first_features(k)

        def some(fold: int, k: int = k) -> Iterator[tuple[Tensor, Tensor]]:
            return ((z[folds == fold, :k], y[folds == fold]) for z, y, folds in reduced)

        fitted = narrow.fit(groups, some)
        found[k] = fitted._replace(weights=directions[:, :k] @ fitted.weights)
    return found
