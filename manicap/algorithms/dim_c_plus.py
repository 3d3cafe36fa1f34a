"""DIM-C+: DeepInfoMax with manifold capacity as a regularizer (arXiv 2405.13848, Eq 10 and Algorithm 2).

    L = L_global + L_local - epsilon ||C||_*

    L_global    InfoNCE of every head's output at t with the local features at t+1, mean over heads and positions
    L_local     InfoNCE of the local features at t with those at t+1, mean over positions
    C           mean over heads of the L2-normalised outputs at t, one row per sample

The heads are discarded after training: the probe sees the convolutional features.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

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
from manicap.core.ranges import HeadCount, NonNegative, Positive, Width
from manicap.losses.capacity import CapacityRegularizer
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class DIMCPlusSettings(PairSettings):
    num_heads: HeadCount = 4
    """Number of heads (charts)."""
    units: Width = 4096
    """Width of each head's output."""
    hidden_units: Width = 2048
    """Width of each head's hidden layer."""
    epsilon: NonNegative = 5e-4
    """Weight of the capacity term; 0 keeps the heads and disables the term."""
    target_ratio: Positive | None = None
    """Replaces the fixed weight: it is chosen so that the capacity term is this fraction of the other terms."""
    capacity_on: CapacityOn = "first"
    """Capacity of the outputs at t only, or the mean over t and t+1."""

    @classmethod
    def beyond_the_paper(cls) -> dict[str, Any]:
        # In the paper's Figure 2b, 512 units do as well as 4096. As wide, a hidden layer costs a quarter of 2048 units.
        return super().beyond_the_paper() | {"units": 512, "hidden_units": 512}


class DIMCPlus(PairMethod):
    """Heads with one hidden layer on the convolutional features, each with its own global term."""

    settings_type: ClassVar[type[Settings]] = DIMCPlusSettings

    def __init__(self, settings: DIMCPlusSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.heads = Heads(self.encoder.num_features, settings.num_heads, settings.units, settings.hidden_units)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)
        epsilon = settings.epsilon if settings.target_ratio is None else None
        self.capacity = CapacityRegularizer(epsilon, target_ratio=settings.target_ratio)

    def loss(self, batch: Batch) -> LossOutput:
        settings, B = self.settings, len(batch.frames_BTCHW)
        on_both = settings.capacity_on == "both"
        encoded = encode_times(self.encoder, batch.frames_BTCHW, max(settings.predicting_frames, 1 + on_both))
        heads_TBND = self.heads(encoded.features_BF)
        parts = mean_over_pairs(settings, self.predictors.infonce, heads_TBND, encoded.local_BPC)
        parts |= self.reconstruction(batch.frames_BTCHW, encoded.features_BF)
        heads_next_BND = heads_TBND[B : 2 * B] if on_both else None
        capacity, measured = self.capacity(heads_TBND[:B], LossOutput(parts).total, heads_next_BND)
        metrics = detached({f"capacity_{name}": value for name, value in measured.items()})
        return LossOutput({**parts, "capacity": capacity}, metrics)
