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
    encode_times,
)
from manicap.algorithms.predictors import PairMethod, PairSettings, SpatialPredictors, mean_over_pairs
from manicap.algorithms.regularization import regularized
from manicap.core.ranges import HeadCount, NonNegative, Width
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class DIMCPlusSettings(PairSettings):
    own_regularizer: ClassVar[str] = "capacity"

    num_heads: HeadCount = 4
    """Number of heads (charts)."""
    units: Width = 4096
    """Width of each head's output."""
    hidden_units: Width = 2048
    """Width of each head's hidden layer."""
    epsilon: NonNegative = 5e-4
    """Weight of the regularizer's term; 0 keeps the heads and disables the term."""
    capacity_on: CapacityOn = "first"
    """Apply the regularizer to the outputs at t only (first), or average it over t and t+1 (both)."""

    @classmethod
    def beyond_the_paper(cls) -> dict[str, Any]:
        # In the paper's Figure 2b, 512 units do as well as 4096. As wide, a hidden layer costs a quarter of 2048 units.
        return super().beyond_the_paper() | {"units": 512, "hidden_units": 512}


class DIMCPlus(PairMethod):
    """DeepInfoMax with several MLP heads and their manifold capacity as a regularizer."""

    settings_type: ClassVar[type[Settings]] = DIMCPlusSettings

    def __init__(self, settings: DIMCPlusSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.heads = Heads(self.encoder.num_features, settings.num_heads, settings.units, settings.hidden_units)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)
        self.regularizer = settings.build_regularizer()

    def loss(self, batch: Batch) -> LossOutput:
        settings, B = self.settings, len(batch.frames_BTCHW)
        on_both = settings.capacity_on == "both"
        encoded = encode_times(self.encoder, batch.frames_BTCHW, max(settings.predicting_frames, 1 + on_both))
        heads_TBND = self.heads(encoded.features_BF)
        parts = mean_over_pairs(settings, self.predictors.infonce, heads_TBND, encoded.local_BPC)
        parts |= self.reconstruction(batch.frames_BTCHW, encoded.features_BF)
        heads_next_BND = heads_TBND[B : 2 * B] if on_both else None
        return regularized(LossOutput(parts), self.regularizer, heads_TBND[:B], heads_next_BND)
