"""A converged multinomial logistic regression per variable, all variables in one L-BFGS.

    minimise over W, b:   mean over frames of cross-entropy(W z + b)  +  l2 / 2 ||W||^2,    z = (x - mean) / std

Features are standardised by the training frames, so that one `l2` means the same for every encoder; the bias is not
penalised. The variables' terms do not share weights, so the joint minimum is each variable's own. Classes absent from
training are left out: their bias would go to minus infinity. Equal to scikit-learn's
`LogisticRegression(C=1 / (n l2))`.

Features of a network are strongly correlated, and plain L-BFGS takes hundreds of steps. Here it optimises A instead of
W:

    W = A S V^T,   S = diag(lambda_j / 2 + l2)^(-1/4)

with V, lambda the eigenvectors and eigenvalues of the features' correlation matrix. The minimum is the same, and the
curvatures are closer together: the power -1/2 would make them equal at W = 0, but not at the minimum, where few frames
are uncertain, and -1/4 came closest in the fewest steps. Directions without variance have no gradient and are left out.
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
        problem = _Objective(self._standardise(train.features), train.labels, self.columns_, self.config.l2)
        optimizer = torch.optim.LBFGS(
            [problem.scaled, problem.bias],
            lr=1,
            max_iter=self.config.max_iterations,
            tolerance_grad=self.config.tolerance,
            tolerance_change=1e-9,
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        with Tracker("logistic probe", self.config.max_iterations, "iterations", self.quiet) as tracker:

            def closure() -> Tensor:
                loss = problem.loss_and_gradient()
                tracker.advance(detail=f"loss {float(loss):.4f}")
                return loss

            optimizer.step(closure)
        self.loss_ = float(problem.loss_and_gradient())
        self.gradient_ = max(float(x.grad.abs().max()) for x in (problem.scaled, problem.bias) if x.grad is not None)
        self.weights_, self.bias_ = problem.weights(), problem.bias
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


class _Objective:
    """The objective summed over the variables, as a function of `scaled`, the A above, [C, R], and `bias` [C]."""

    def __init__(self, z: Tensor, labels: Labels, columns: ClassColumns, l2: float) -> None:
        self.columns, self.l2 = columns, l2
        self.targets = columns.targets(labels)
        variances, self.directions = _principal_directions(z)
        self.z = torch.cat([piece @ self.directions for piece in z.split(_ROWS)])
        self.scale = (variances / 2 + l2) ** -0.25
        self.scaled, self.bias = torch.zeros(columns.num_rows, len(variances)), torch.zeros(columns.num_rows)
        self.scaled.grad, self.bias.grad = torch.zeros_like(self.scaled), torch.zeros_like(self.bias)

    def weights(self) -> Tensor:
        """W, for the standardised features."""
        return (self.scaled * self.scale) @ self.directions.T

    def loss_and_gradient(self) -> Tensor:
        """The objective; its gradient is left in `.grad`. Computed in chunks of frames, to bound the logits."""
        assert self.scaled.grad is not None
        assert self.bias.grad is not None
        weights = self.scaled * self.scale
        total = self.l2 / 2 * weights.double().square().sum()
        gradient = self.l2 * weights
        self.bias.grad.zero_()
        for z, targets in zip(self.z.split(_ROWS), self.targets.split(_ROWS), strict=True):
            losses, residual = self.columns.loss_and_residual(torch.addmm(self.bias, z, weights.T), targets)
            total = total + losses.double().sum() / len(self.z)
            gradient.addmm_(residual.T, z, alpha=1 / len(self.z))
            self.bias.grad += residual.sum(0) / len(self.z)
        torch.mul(gradient, self.scale, out=self.scaled.grad)
        return total


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
