"""DIM-UA (arXiv 2305.10267) and DIM-UAC+ (arXiv 2405.13848, Eq 9 and Algorithm 1): an unbalanced atlas of charts.

    L = L_global + L_local - tau/2 (U(q_t) + U(q_{t+1})) [ - epsilon ||C||_* ]

    U(q) = E sum_i (q_i - 1/n)^2      Eq 3: the membership q is pushed away from uniformity
    L_global                          of the mean of the charts' outputs (or of their mean weighted by q, see `target`)

The probe sees the chart with the highest membership.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from manicap.algorithms.base import (
    Batch,
    CapacityOn,
    LossOutput,
    Method,
    MethodContext,
    PresetName,
    Settings,
    detached,
    encode_both,
)
from manicap.algorithms.predictors import PairSettings, SpatialPredictors, mean_parts
from manicap.core.ranges import HeadCount, NonNegative, Positive, Width
from manicap.losses.atlas import unbalance
from manicap.losses.capacity import CapacityRegularizer
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads, Membership, select_chart


@dataclass(frozen=True)
class DIMUASettings(PairSettings):
    num_heads: HeadCount = 4
    """Number of charts in the atlas."""
    units: Width = 4096
    """Width of each chart."""
    hidden_units: Width | None = None
    """Width of each chart's hidden layer, followed by ReLU; if unset, charts are linear."""
    unbalance_weight: NonNegative = 0.1
    """tau of the paper's Table 3."""
    target: Literal["mean", "membership"] = "mean"
    """What the global term predicts from: the mean of the charts, or their mean weighted by the membership."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        return cls() if name == "paper" else cls(units=512)


@dataclass(frozen=True)
class DIMUAWeightedSettings(DIMUASettings):
    target: Literal["mean", "membership"] = "membership"
    """What the global term predicts from: here the mean of the charts weighted by the membership."""


@dataclass(frozen=True)
class DIMUACPlusSettings(DIMUASettings):
    epsilon: NonNegative = 5e-4
    """Weight of the capacity term."""
    target_ratio: Positive | None = None
    """Replaces the fixed weight: it is chosen so that the capacity term is this fraction of the other terms."""
    capacity_on: CapacityOn = "first"
    """Capacity of the charts' outputs at t only, or the mean over t and t+1."""


class DIMUA(Method):
    """Charts, linear by default, and a membership on the convolutional features."""

    settings_type: ClassVar[type[Settings]] = DIMUASettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "heads", "membership")

    def __init__(self, settings: DIMUASettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.heads = Heads(self.encoder.num_features, settings.num_heads, settings.units, settings.hidden_units)
        self.membership = Membership(self.encoder.num_features, settings.num_heads)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)

    def loss(self, batch: Batch) -> LossOutput:
        now, after = encode_both(self.encoder, batch.frames_BTCHW)
        heads_BND = self.heads(now.features_BF)
        q_BN, q_next_BN = self.membership(now.features_BF), self.membership(after.features_BF)
        parts = self.predictors.infonce(self.target(heads_BND, q_BN), now.local_BPC, after.local_BPC)
        if self.settings.directions == "both":
            target_BND = self.target(self.heads(after.features_BF), q_next_BN)
            parts = mean_parts(parts, self.predictors.infonce(target_BND, after.local_BPC, now.local_BPC))
        tau = self.settings.unbalance_weight
        parts["unbalance"] = tau / 2 * (unbalance(q_BN) + unbalance(q_next_BN))
        metrics = detached({"membership_max": q_BN.max(1).values.mean()})
        return self.regularize(heads_BND, after, LossOutput(parts, metrics))

    def target(self, heads_BND: Tensor, q_BN: Tensor) -> Tensor:
        """What the global term predicts from, `[B, 1, D]`."""
        if self.settings.target == "mean":
            return heads_BND.mean(1, keepdim=True)
        return torch.einsum("bn,bnd->bd", q_BN, heads_BND)[:, None]

    def regularize(self, heads_BND: Tensor, after: Encoded, loss: LossOutput) -> LossOutput:
        """Where DIM-UAC+ adds its term."""
        return loss

    def output(self, encoded: Encoded) -> Tensor:
        return select_chart(self.heads(encoded.features_BF), self.membership(encoded.features_BF))


class DIMUAWeighted(DIMUA):
    """The variant of DIM-UA without the mean target (`-UA` in its paper)."""

    settings_type = DIMUAWeightedSettings


class DIMUACPlus(DIMUA):
    """DIM-UA with the capacity of its charts' outputs as a regularizer."""

    settings_type = DIMUACPlusSettings

    def __init__(self, settings: DIMUACPlusSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        epsilon = settings.epsilon if settings.target_ratio is None else None
        self.capacity = CapacityRegularizer(epsilon, target_ratio=settings.target_ratio)
        self.capacity_on = settings.capacity_on

    def regularize(self, heads_BND: Tensor, after: Encoded, loss: LossOutput) -> LossOutput:
        heads_next_BND = self.heads(after.features_BF) if self.capacity_on == "both" else None
        capacity, measured = self.capacity(heads_BND, loss.total, heads_next_BND)
        metrics = {f"capacity_{name}": value for name, value in measured.items()}
        return LossOutput({**loss.parts, "capacity": capacity}, {**loss.metrics, **detached(metrics)})
