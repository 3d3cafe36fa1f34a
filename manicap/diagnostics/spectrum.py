"""How many directions a representation uses: singular values and eigenvalues of its features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from manicap.diagnostics.samples import Floats, as_samples

EPSILON = 1e-7


def effective_rank(features: NDArray[Any], centered: bool = False) -> float:
    """RankMe: the exponential of the entropy of the singular values (arXiv 2210.02885).

        p_k    = s_k / sum s + 1e-7
        RankMe = exp(-sum_k p_k log p_k)

    It ranges from 1, for one direction, to min(n, D), for equal singular values. The paper keeps the mean; `centered`
    subtracts it, which is more informative for features with a large mean, such as those after a ReLU.
    """
    x = as_samples(features, "features")
    x = x - x.mean(0) if centered else x
    return _exp_entropy(np.sqrt(_gram_eigenvalues(x)))


def participation_ratio(features: NDArray[Any]) -> float:
    """(sum l)^2 / sum l^2 over the eigenvalues l of the covariance: the number of directions that hold the variance.

        participation_ratio(features)

    It ranges from 1, for one direction, to min(n - 1, D), for equal eigenvalues; 0 if nothing varies. Large eigenvalues
    count for more than in the effective rank.
    """
    x = as_samples(features, "features")
    eigenvalues = _gram_eigenvalues(x - x.mean(0))
    squares = float((eigenvalues**2).sum())
    return float(eigenvalues.sum() ** 2 / squares) if squares > 0 else 0.0


def lidar(groups: NDArray[Any], ridge: float = 1e-4) -> float:
    """LiDAR: the effective rank of what separates groups, relative to what varies within them (arXiv 2312.04000).

        S_b = covariance of the group means,    S_w = mean covariance within the groups + ridge I
        p_k = l_k / sum l + 1e-7                l: eigenvalues of S_w^(-1/2) S_b S_w^(-1/2)
        LiDAR = exp(-sum_k p_k log p_k)

    `groups` is [groups, members, D]: views of one image, or neighbouring frames. LiDAR is at most groups - 1.
    Deviations: none; the eigenvalues are computed as squared singular values of L^-1 M, where S_w = L L^T and M holds
    the centred group means.
    """
    x = as_samples(groups, "groups", ndim=3)
    if x.shape[1] < 2:
        raise ValueError(f"lidar needs at least 2 members per group, got groups of shape {list(x.shape)}")
    means = x.mean(1)
    within = (x - means[:, None]).reshape(-1, x.shape[2])
    scatter = within.T @ within / len(within)
    scatter[np.diag_indices_from(scatter)] += ridge
    between = (means - means.mean(0)) / np.sqrt(len(means))
    whitened = solve_triangular(cholesky(scatter, lower=True), between.T, lower=True)
    return _exp_entropy(_gram_eigenvalues(whitened))


def decay_exponent(features: NDArray[Any], first_rank: int = 1, last_rank: int | None = None) -> float:
    """alpha of l_j ~ j^-alpha, with l the eigenvalues of the covariance in descending order (alpha-ReQ, NeurIPS 2022).

    A straight line is fitted to log l_j over log j, weighted by 1/j so that each octave counts equally (as in Stringer
    et al. 2019, Nature 571, who measured it first). alpha-ReQ finds that representations transfer if alpha is near 1; a
    large alpha means that few directions hold the variance, 0 that all hold the same. Ranks whose eigenvalue is below
    1e-10 of the first are dropped; alpha is infinite if fewer than two are left, that is, one direction or none.
    """
    x = as_samples(features, "features")
    eigenvalues = _gram_eigenvalues(x - x.mean(0)) / len(x)
    ranks = np.arange(1, len(eigenvalues) + 1)
    keep = (ranks >= first_rank) & (ranks <= (last_rank or len(ranks))) & (eigenvalues > 1e-10 * eigenvalues[0])
    if keep.sum() < 2:
        return float("inf")
    log_rank, log_value, weight = np.log(ranks[keep]), np.log(eigenvalues[keep]), 1 / ranks[keep]
    log_rank = log_rank - np.average(log_rank, weights=weight)
    return float(-(weight * log_rank * log_value).sum() / (weight * log_rank**2).sum())


def _gram_eigenvalues(x: Floats) -> Floats:
    """Squared singular values in descending order, from the smaller Gram matrix."""
    gram = x @ x.T if len(x) <= x.shape[1] else x.T @ x
    eigenvalues: Floats = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0)
    # A Gram matrix cannot tell values below eps of the largest from zero; their roots would look like directions.
    return np.where(eigenvalues > len(gram) * np.finfo(np.float64).eps * eigenvalues[0], eigenvalues, 0)


def _exp_entropy(values: Floats) -> float:
    total = values.sum()
    if total == 0:
        return 0.0
    p = values / total + EPSILON
    return float(np.exp(-(p * np.log(p)).sum()))
