"""DIM-UA (arXiv 2305.10267) and DIM-UAC+ (arXiv 2405.13848, Eq 9 and Algorithm 1): an unbalanced atlas of charts.

    L = L_global + L_local - tau/2 (U(q_t) + U(q_{t+1})) [ - epsilon ||C||_* ]

    U(q) = E sum_i (q_i - 1/n)^2      Eq 3: the membership q is pushed away from uniformity
    L_global                          of the mean of the charts' outputs (or of their mean weighted by q, see `target`)

The probe sees the chart with the highest membership.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from manicap.algorithms.base import (
    Batch,
    CapacityOn,
    LossOutput,
    MethodContext,
    Settings,
    detached,
    encode_times,
)
from manicap.algorithms.predictors import PairMethod, PairSettings, SpatialPredictors, mean_over_pairs
from manicap.algorithms.regularization import regularized
from manicap.core.ranges import HeadCount, NonNegative, Width
from manicap.losses.atlas import unbalance
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
    def beyond_the_paper(cls) -> dict[str, Any]:
        return super().beyond_the_paper() | {"units": 512}


@dataclass(frozen=True)
class DIMUAWeightedSettings(DIMUASettings):
    target: Literal["mean", "membership"] = "membership"
    """What the global term predicts from: here the mean of the charts weighted by the membership."""


@dataclass(frozen=True)
class DIMUACPlusSettings(DIMUASettings):
    own_regularizer: ClassVar[str] = "capacity"

    epsilon: NonNegative = 5e-4
    """Weight of the regularizer's term."""
    capacity_on: CapacityOn = "first"
    """Apply the regularizer to the charts' outputs at t only (first), or average it over t and t+1 (both)."""


class DIMUA(PairMethod):
    """DeepInfoMax with an unbalanced atlas: several charts, linear by default, and a membership."""

    settings_type: ClassVar[type[Settings]] = DIMUASettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "heads", "membership")
    regularized_frames = 1
    """Frames of a sample whose charts are needed for more than predictions."""

    def __init__(self, settings: DIMUASettings, context: MethodContext) -> None:
        super().__init__(settings, context, settings.units)
        self.settings = settings
        self.heads = Heads(self.encoder.num_features, settings.num_heads, settings.units, settings.hidden_units)
        self.membership = Membership(self.encoder.num_features, settings.num_heads)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)
        self.regularizer = settings.build_regularizer()

    def loss(self, batch: Batch) -> LossOutput:
        settings, B = self.settings, len(batch.frames_BTCHW)
        encoded = encode_times(self.encoder, batch.frames_BTCHW)
        predicting = max(settings.predicting_frames, self.regularized_frames) * B
        heads_TBND = self.heads(encoded.features_BF[:predicting])
        q_TBN = self.membership(encoded.features_BF)
        target_TBND = self.target(heads_TBND, q_TBN[:predicting])
        parts = mean_over_pairs(settings, self.predictors.infonce, target_TBND, encoded.local_BPC)
        parts |= self.reconstruction(batch.frames_BTCHW, encoded.features_BF)
        parts["unbalance"] = settings.unbalance_weight * unbalance(q_TBN)
        metrics = detached({"membership_max": q_TBN[:B].max(1).values.mean()})
        heads_next_BND = heads_TBND[B : 2 * B] if self.regularized_frames == 2 else None
        return regularized(LossOutput(parts, metrics), self.regularizer, heads_TBND[:B], heads_next_BND)

    def target(self, heads_BND: Tensor, q_BN: Tensor) -> Tensor:
        """What the global term predicts from, `[B, 1, D]`."""
        if self.settings.target == "mean":
            return heads_BND.mean(1, keepdim=True)
        return torch.einsum("bn,bnd->bd", q_BN, heads_BND)[:, None]

    def output(self, encoded: Encoded) -> Tensor:
        return select_chart(self.heads(encoded.features_BF), self.membership(encoded.features_BF))


class DIMUAWeighted(DIMUA):
    """DIM-UA that predicts from the charts weighted by their membership (`-UA` in its paper)."""

    settings_type = DIMUAWeightedSettings


class DIMUACPlus(DIMUA):
    """DIM-UA with the capacity of its charts' outputs as a regularizer."""

    settings_type = DIMUACPlusSettings

    def __init__(self, settings: DIMUACPlusSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.regularized_frames = 2 if settings.capacity_on == "both" else 1
