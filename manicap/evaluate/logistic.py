"""A converged multinomial logistic regression a variable, all variables in one L-BFGS.

    minimise over W, b:   mean over frames of cross-entropy(W z + b)  +  l2 / 2 ||W||^2,    z = (x - mean) / std

Features are standardised by the training frames, so that one `l2` means the same for every encoder; the bias is not
penalised. The variables' terms do not share weights, so the joint minimum is each variable's own. Classes that
training lacks are left out: their bias would go to minus infinity. Equal to scikit-learn's
`LogisticRegression(C=1 / (n l2))`.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.progress import Tracker
from manicap.evaluate.columns import ClassColumns
from manicap.evaluate.metrics import Labels
from manicap.evaluate.sampling import ProbeData

_ROWS = 4096


@dataclass(frozen=True)
class LogisticConfig:
    l2: float = 1e-3
    max_iterations: int = 200
    tolerance: float = 3e-4
    """Converged when no component of the gradient is larger: the loss is then within 0.1% of the minimum."""


class LogisticProbes:
    """Converged linear classifiers: what is linearly there, whatever an optimiser's schedule finds."""

    name = "logistic"

    def __init__(self, config: LogisticConfig | None = None, quiet: bool = True) -> None:
        self.config, self.quiet = config or LogisticConfig(), quiet

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        """Sets `weights_` [C, F], `bias_` [C], `loss_` and `gradient_` (its largest component). `val` is not used."""
        self.columns_ = ClassColumns.from_labels(train.labels, "drop")
        self.mean_, self.std_ = _moments(train.features)
        z = self._standardise(train.features)
        targets = self.columns_.targets(train.labels)
        self.weights_ = torch.zeros(self.columns_.num_rows, z.shape[1])
        self.bias_ = torch.zeros(self.columns_.num_rows)
        self.weights_.grad, self.bias_.grad = torch.zeros_like(self.weights_), torch.zeros_like(self.bias_)
        optimizer = torch.optim.LBFGS(
            [self.weights_, self.bias_],
            lr=1,
            max_iter=self.config.max_iterations,
            tolerance_grad=self.config.tolerance,
            tolerance_change=1e-9,
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        with Tracker("logistic probe", self.config.max_iterations, "iterations", self.quiet) as tracker:

            def closure() -> Tensor:
                loss = self._loss_and_gradient(z, targets)
                tracker.advance(detail=f"loss {float(loss):.4f}")
                return loss

            optimizer.step(closure)
        self.loss_ = float(self._loss_and_gradient(z, targets))
        self.gradient_ = max(float(self.weights_.grad.abs().max()), float(self.bias_.grad.abs().max()))
        return self

    def predict(self, features: NDArray[np.float32]) -> Labels:
        """Decoded labels, uint8 [n, V]."""
        pieces = []
        for start in range(0, len(features), _ROWS):
            z = self._standardise(features[start : start + _ROWS])
            pieces.append(self.columns_.predict(z @ self.weights_.T + self.bias_).numpy())
        return np.concatenate(pieces)

    def _standardise(self, features: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy((features - self.mean_) / self.std_)

    def _loss_and_gradient(self, z: Tensor, targets: Tensor) -> Tensor:
        """The objective summed over the variables; its gradient is left in `.grad`. In pieces, to bound the logits."""
        assert self.weights_.grad is not None
        assert self.bias_.grad is not None
        torch.mul(self.weights_, self.config.l2, out=self.weights_.grad)
        self.bias_.grad.zero_()
        total = self.config.l2 / 2 * self.weights_.double().square().sum()
        for z_piece, targets_piece in zip(z.split(_ROWS), targets.split(_ROWS), strict=True):
            logits = torch.addmm(self.bias_, z_piece, self.weights_.T)
            losses, residual = self.columns_.loss_and_residual(logits, targets_piece)
            total = total + losses.double().sum() / len(z)
            self.weights_.grad.addmm_(residual.T, z_piece, alpha=1 / len(z))
            self.bias_.grad += residual.sum(0) / len(z)
        return total


def _moments(features: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation [F]; a constant feature gets 1, so that it stays 0. In pieces, without a copy."""
    count = len(features)
    pieces = [features[start : start + _ROWS] for start in range(0, count, _ROWS)]
    mean = np.sum([piece.sum(0, dtype=np.float64) for piece in pieces], axis=0) / count
    mean32 = mean.astype(np.float32)
    variance = np.sum([np.square(piece - mean32).sum(0, dtype=np.float64) for piece in pieces], axis=0) / count
    std = np.sqrt(variance)
    return mean32, np.where(std > 1e-6 * np.maximum(np.abs(mean), 1e-6), std, 1).astype(np.float32)
