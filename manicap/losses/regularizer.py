"""Base class of regularizers: a penalty on the outputs `[B, N, D]` of heads or views, weighted beside a base loss.

    class MyRegularizer(Regularizer):
        term = "mine"
        def penalty(self, heads_BND): ...      # a scalar to be minimised, of the samples of all processes

`losses/regularizers.py` lists every regularizer in REGULARIZERS; add yours there with one line.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import mean_over_processes
from manicap.losses.pairs import in_float32


class Regularizer(nn.Module):
    """weight * penalty(heads): the term to add to a base loss.

    Pass either `epsilon`, a fixed weight, or `target_ratio`: the weight is then `target_ratio` times an exponential
    average of |base loss| / |penalty|, so that the size of the term is about that fraction of the base loss, whatever
    the penalty's scale and sign. The average is a buffer, is updated only in training mode, and is the same on every
    process. A penalty of exactly 0 leaves it unchanged. The weight of a penalty that approaches 0 rises.
    """

    term: ClassVar[str]
    """Name of the term among the parts of a loss."""
    average: Tensor

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
    ) -> None:
        super().__init__()
        if (epsilon is None) == (target_ratio is None):
            raise ValueError(f"give exactly one of epsilon and target_ratio, got {epsilon} and {target_ratio}")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1), got {smoothing}")
        self.epsilon, self.target_ratio, self.smoothing = epsilon, target_ratio, smoothing
        # Average of |base loss| / |penalty|; negative until the first training step sets it.
        self.register_buffer("average", torch.tensor(-1.0))

    def penalty(self, heads_BND: Tensor) -> Tensor:
        """The unweighted penalty to minimise, of float32 or float64 heads `[B, N, D]`, outside autocast."""
        raise NotImplementedError

    def describe(self, penalty: Tensor, heads_BND: Tensor) -> dict[str, Tensor | float]:
        """Values to log, without gradient; by default the penalty itself."""
        return {"penalty": penalty}

    def forward(
        self,
        heads_BND: Tensor,
        base_loss: Tensor | None = None,
        other_BND: Tensor | Sequence[Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor | float]]:
        """Heads `[B, N, D]` (or views `[B, V, D]`) -> the term to add to the loss, and values to log.

        If `other_BND` holds the heads of another frame or view, or those of several in a sequence, the penalty is the
        mean over all of them, so the term keeps its scale. The values to log are those of `describe`, `weight` and, if
        the base loss is given, `ratio`, the term's size relative to it.
        """
        name = type(self).__name__
        if base_loss is None and self.target_ratio is not None:
            raise ValueError(f"{name} with a target_ratio needs base_loss in every call")
        if heads_BND.ndim != 3 or heads_BND.numel() == 0:
            raise ValueError(f"{name} needs heads_BND of shape [B, N, D], got {list(heads_BND.shape)}")
        others = [other_BND] if isinstance(other_BND, Tensor) else list(other_BND or ())
        for other in others:
            if other.shape != heads_BND.shape:
                raise ValueError(
                    f"{name} needs heads_BND and other_BND of one shape, "
                    f"got {list(heads_BND.shape)} and {list(other.shape)}"
                )
        with torch.autocast(heads_BND.device.type, enabled=False):
            stacks = [in_float32(heads) for heads in (heads_BND, *others)]
            penalty = torch.stack([self.penalty(heads) for heads in stacks]).mean()
        base_size = None if base_loss is None else mean_over_processes(base_loss).abs()
        size = penalty.detach().abs()
        weight = self._weight(size, base_size)
        parts = {**self.describe(penalty.detach(), heads_BND), "weight": weight}
        if base_size is not None:
            parts["ratio"] = weight * size / base_size
        return weight * penalty, parts

    def _weight(self, size: Tensor, base_size: Tensor | None) -> Tensor | float:
        if self.target_ratio is None or base_size is None:
            assert self.epsilon is not None
            return self.epsilon
        quotient = (base_size / size).to(self.average)
        moved = self.smoothing * self.average + (1 - self.smoothing) * quotient
        moved = torch.where(self.average < 0, quotient, moved)
        # A penalty of 0 (all-zero heads): an infinite quotient must not stay in the average.
        average = torch.where(torch.isfinite(quotient), moved, self.average)
        if self.training:
            self.average.copy_(average)
        elif self.average >= 0:
            average = self.average
        return (self.target_ratio * average.clamp_min(0)).to(size.dtype)


class NoRegularizer(Regularizer):
    """The control: a term of 0, whatever the weight."""

    term: ClassVar[str] = "none"

    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
    ) -> None:
        super().__init__(0.0, smoothing=smoothing)

    def penalty(self, heads_BND: Tensor) -> Tensor:
        return heads_BND.new_zeros(())
