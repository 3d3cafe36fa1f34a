"""ST-DIM: Spatiotemporal DeepInfoMax (arXiv 1906.08226).

L = L_global + L_local     InfoNCE between frames t and t+1, Eqs 7 and 8 of arXiv 2405.13848 with one linear head
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, FrameSettings, LossOutput, Method, MethodContext, encode_pair
from manicap.algorithms.predictors import SpatialPredictors
from manicap.core.ranges import Width
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class STDIMSettings(FrameSettings):
    units: Width = 256
    """Width of the representation."""


class STDIM(Method):
    """One linear head on the convolutional features; the probe sees its output."""

    settings_type = STDIMSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: STDIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)

    def loss(self, batch: Batch) -> LossOutput:
        now, y_next_BPC = encode_pair(self.encoder, batch.frames_BTCHW)
        return LossOutput(self.predictors.infonce(self.head(now.features_BF), now.local_BPC, y_next_BPC))

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
