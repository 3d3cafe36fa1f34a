"""A converged multinomial logistic regression per variable, all variables in one L-BFGS.

    minimise over W, b:   mean over frames of cross-entropy(W z + b)  +  l2 / 2 ||W||^2,    z = (x - mean) / std

Features are standardised by the training frames, so that one `l2` means the same for every encoder; the bias is not
penalised. Equal to scikit-learn's `LogisticRegression(C=1 / (n l2))`; how it is solved is said in `softmax`.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.config import check_config
from manicap.core.progress import Tracker
from manicap.core.ranges import Count, NonNegative
from manicap.probing.columns import ClassColumns
from manicap.probing.metrics import Labels
from manicap.probing.sampling import ProbeData
from manicap.probing.softmax import SoftmaxProblem

_ROWS = 4096


@dataclass(frozen=True)
class LogisticConfig:
    l2: NonNegative = 1e-3
    max_iterations: Count = 60
    """60 iterations come within about 1 % of the minimal loss on Pong, trained or untrained."""
    tolerance: NonNegative = 3e-4
    """Stop earlier if no component of the gradient with respect to A is larger."""


class LogisticProbes:
    """Converged linear classifiers: what is linearly decodable, independent of an optimiser's schedule."""

    name = "logistic"

    def __init__(self, config: LogisticConfig | None = None, quiet: bool = True) -> None:
        self.config, self.quiet = config or LogisticConfig(), quiet
        check_config(self.config)

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        """Set `weights_` [C, F], `bias_` [C], `loss_` and `gradient_` (its largest component). `val` is not used."""
        self.columns_ = ClassColumns.from_labels(train.labels, "drop")
        self.mean_, self.std_ = _moments(train.features)
        z = self._standardise(train.features)
        variances, directions = _principal_directions(z)
        rotated = torch.cat([piece @ directions for piece in z.split(_ROWS)])
        problem = SoftmaxProblem(
            rotated, variances, train.labels, self.columns_, [self.config.l2] * train.labels.shape[1]
        )
        with Tracker("logistic probe", self.config.max_iterations, "iterations", self.quiet) as tracker:
            self.gradient_ = problem.minimise(self.config.max_iterations, self.config.tolerance, tracker)
        self.loss_, self.bias_ = problem.loss, problem.bias
        self.weights_ = problem.weights @ directions.T
        return self

    def predict(self, features: NDArray[np.float32]) -> Labels:
        """Decoded labels [n, V]."""
        pieces = []
        for start in range(0, len(features), _ROWS):
            z = self._standardise(features[start : start + _ROWS])
            pieces.append(self.columns_.predict(z @ self.weights_.T + self.bias_).numpy())
        return np.concatenate(pieces)

    def _standardise(self, features: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy((features - self.mean_) / self.std_)


def _principal_directions(z: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues [R] and eigenvectors [F, R] of Z^T Z / n, without the directions in which nothing varies."""
    live = z.any(0).nonzero().flatten()
    x = z if len(live) == z.shape[1] else z[:, live]
    variances, found = torch.linalg.eigh(x.T @ x / len(x))
    kept = variances > 1e-6 * variances[-1]
    directions = torch.zeros(z.shape[1], int(kept.sum()))
    directions[live] = found[:, kept]
    return variances[kept], directions


def _moments(features: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation [F]; a constant feature gets 1, so that it stays 0. In chunks, without a copy."""
    count = len(features)
    pieces = [features[start : start + _ROWS] for start in range(0, count, _ROWS)]
    mean = np.sum([piece.sum(0, dtype=np.float64) for piece in pieces], axis=0) / count
    mean32 = mean.astype(np.float32)
    variance = np.sum([np.square(piece - mean32).sum(0, dtype=np.float64) for piece in pieces], axis=0) / count
    std = np.sqrt(variance)
    return mean32, np.where(std > 1e-6 * np.maximum(np.abs(mean), 1e-6), std, 1).astype(np.float32)
