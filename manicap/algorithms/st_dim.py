"""ST-DIM: Spatiotemporal DeepInfoMax (arXiv 1906.08226).

L = L_global + L_local     InfoNCE between frames t and t+1, Eqs 7 and 8 of arXiv 2405.13848 with one linear head
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import (
    Batch,
    LossOutput,
    Method,
    MethodContext,
    OneHeadSettings,
    encode_both,
    encode_pair,
)
from manicap.algorithms.predictors import PairSettings, SpatialPredictors, mean_parts
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads

Estimate = Callable[[Tensor, Tensor, Tensor], dict[str, Tensor]]
"""The terms of heads `[B, N, D]` and a feature map `[B, P, C]` with the other frame's map."""


@dataclass(frozen=True)
class STDIMSettings(OneHeadSettings, PairSettings):
    """Those of its two bases."""


class STDIM(Method):
    """One linear head on the convolutional features; the probe sees its output."""

    settings_type = STDIMSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: STDIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.directions = settings.directions
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)

    def loss(self, batch: Batch) -> LossOutput:
        return LossOutput(self.terms(batch.frames_BTCHW, self.predictors.infonce))

    def terms(self, frames_BTCHW: Tensor, estimate: Estimate) -> dict[str, Tensor]:
        """The two terms, by a given estimator."""
        if self.directions == "forward":
            now, y_next_BPC = encode_pair(self.encoder, frames_BTCHW)
            return estimate(self.head(now.features_BF), now.local_BPC, y_next_BPC)
        now, after = encode_both(self.encoder, frames_BTCHW)
        forward = estimate(self.head(now.features_BF), now.local_BPC, after.local_BPC)
        return mean_parts(forward, estimate(self.head(after.features_BF), after.local_BPC, now.local_BPC))

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
