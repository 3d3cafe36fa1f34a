"""A regularizer on a method's outputs, chosen by name, and its weight beside the other terms of the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from manicap.algorithms.base import LossOutput, Settings, detached
from manicap.core.ranges import NonNegative, Positive, Range
from manicap.core.registry import Known
from manicap.losses.regularizer import NoRegularizer, Regularizer
from manicap.losses.regularizers import REGULARIZERS


@dataclass(frozen=True)
class RegularizedSettings(Settings):
    """Settings of methods whose outputs can be regularized."""

    own_regularizer: ClassVar[str] = "none"
    """The regularizer of the method's paper."""

    regularizer: Annotated[str, Known(REGULARIZERS)] | None = None
    """Regularizer of the heads' outputs: capacity, vicreg, barlow, sigreg, uniformity, none, or package.module:Name; if
    unset, the method's own, which is capacity in C+ and none otherwise."""
    epsilon: NonNegative | None = None
    """Weight of the regularizer's term."""
    target_ratio: Positive | None = None
    """Replaces the fixed weight: it is chosen so that the regularizer's term is this fraction of the other terms."""
    ratio_smoothing: Annotated[float, Range(0, 0.9999)] | None = None
    """How much of the weight's running average is kept per step; if unset, 0.99. Fewer steps need a shorter memory."""

    def build_regularizer(self) -> Regularizer | None:
        """The regularizer with its weight; None if there is none."""
        found = REGULARIZERS[self.regularizer or self.own_regularizer]
        if found is NoRegularizer:
            return None
        epsilon = self.epsilon if self.target_ratio is None else None
        if self.ratio_smoothing is None:
            return found(epsilon, target_ratio=self.target_ratio)
        return found(epsilon, target_ratio=self.target_ratio, smoothing=self.ratio_smoothing)

    def problems(self) -> list[str]:
        if (self.regularizer or self.own_regularizer) == "none":
            idle = self.target_ratio is not None or (self.regularizer is None and bool(self.epsilon))
            return ["epsilon and target_ratio are weights of a regularizer: name one with regularizer"] if idle else []
        if self.regularizer is not None and not self.epsilon and self.target_ratio is None:
            return [f"regularizer {self.regularizer} needs a weight: give target_ratio (0.02, for example) or epsilon"]
        return []


def regularized(
    loss: LossOutput,
    regularizer: Regularizer | None,
    heads_BND: Tensor,
    other_BND: Tensor | Sequence[Tensor] | None = None,
) -> LossOutput:
    """The loss plus the regularizer's term, if any, of the heads of one frame or view, or its mean over several."""
    if regularizer is None:
        return loss
    name = regularizer.term
    if name in loss.parts:
        raise ValueError(f"the loss already has a part {name!r}: the regularizer's term needs another name")
    term, measured = regularizer(heads_BND, loss.total, other_BND)
    metrics = detached({f"{name}_{key}": value for key, value in measured.items()})
    return LossOutput({**loss.parts, name: term}, {**loss.metrics, **metrics})
