"""Multinomial logistic regressions of several variables in one L-BFGS: the objective that converged probes minimise.

    mean over frames of cross-entropy(W z + b)  +  l2 / 2 ||W||^2

The variables share no weights, so the joint minimum is each variable's own; each has its own `l2`, and the bias is not
penalised. Classes absent from training are left out: their bias would go to minus infinity.

Features of a network are strongly correlated, and plain L-BFGS takes hundreds of steps. Here features are rotated to
their principal directions, with variances lambda_j, and A is optimised instead of W:

    W = A S,   S = diag(lambda_j / 2 + l2)^(-1/4)

The minimum is the same, and the curvatures are closer together: the power -1/2 would make them equal at W = 0, but not
at the minimum, where few frames are uncertain, and -1/4 came closest in the fewest steps.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from manicap.core.progress import Tracker
from manicap.probing.columns import ClassColumns
from manicap.probing.metrics import Labels

ROWS = 4096
"""Frames at a time: bounds the memory of the logits."""


class SoftmaxProblem:
    """The objective summed over the variables, as a function of `scaled`, the A above, [C, R], and `bias` [C]."""

    def __init__(
        self,
        rotated: Tensor,
        variances: Tensor,
        labels: Labels,
        columns: ClassColumns,
        l2: Sequence[float],
        weights: Tensor | None = None,
    ) -> None:
        """Rotated features float32 [n, R] with their variances [R], labels [n, V], and the l2 of each variable.

        `weights` [n, V], which add up to 1, make the mean over frames a weighted one, for each variable its own.
        """
        self.rotated, self.columns = rotated, columns
        self.targets = columns.targets(labels)
        self.shares = torch.full(labels.shape, 1 / len(rotated)) if weights is None else weights
        self.l2 = torch.tensor(l2)[columns.variable_of_row][:, None]
        self.scale = (variances / 2 + self.l2) ** -0.25
        self.scaled, self.bias = torch.zeros(self.scale.shape), torch.zeros(columns.num_rows)
        self.scaled.grad, self.bias.grad = torch.zeros_like(self.scaled), torch.zeros_like(self.bias)

    @property
    def weights(self) -> Tensor:
        """W [C, R], for the rotated features."""
        return self.scaled * self.scale

    def minimise(self, max_iterations: int, tolerance: float, tracker: Tracker | None = None) -> float:
        """Run L-BFGS. Returns the largest component of the gradient; it has converged if that is within tolerance."""
        optimizer = torch.optim.LBFGS(
            [self.scaled, self.bias],
            lr=1,
            max_iter=max_iterations,
            tolerance_grad=tolerance,
            tolerance_change=1e-9,
            history_size=10,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            loss = self.loss_and_gradient()
            if tracker is not None:
                tracker.advance(detail=f"loss {float(loss):.4f}")
            return loss

        optimizer.step(closure)
        self.loss = float(self.loss_and_gradient())
        parts = (x.grad.abs().flatten() for x in (self.scaled, self.bias) if x.grad is not None)
        return float(torch.cat(list(parts)).max())

    def loss_and_gradient(self) -> Tensor:
        """The objective; its gradient is left in `.grad`."""
        assert self.scaled.grad is not None
        assert self.bias.grad is not None
        weights = self.weights
        total = (self.l2 / 2 * weights.double().square()).sum()
        gradient = self.l2 * weights
        self.bias.grad.zero_()
        pieces = (each.split(ROWS) for each in (self.rotated, self.targets, self.shares))
        for z, targets, shares in zip(*pieces, strict=True):
            losses, residual = self.columns.loss_and_residual(torch.addmm(self.bias, z, weights.T), targets, shares)
            total = total + losses.double().sum()
            gradient.addmm_(residual.T, z)
            self.bias.grad += residual.sum(0)
        torch.mul(gradient, self.scale, out=self.scaled.grad)
        return total
