"""DIM on single frames: the ablation of ST-DIM without time (arXiv 1906.08226, after arXiv 1808.06670).

    L = L_global    InfoNCE between a frame's global features and the same frame's local ones

A local-local term would compare each vector with itself, so there is none.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, OneHeadSettings
from manicap.algorithms.regularization import RegularizedSettings, regularized
from manicap.losses.infonce import global_local_infonce
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class DIMSettings(OneHeadSettings, RegularizedSettings):
    """Those of its two bases."""


class DIM(Method):
    """ST-DIM without time: global and local features of the same frame."""

    settings_type = DIMSettings
    frames_per_sample = 1
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: DIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictor = nn.Linear(settings.units, self.encoder.local_channels)
        self.regularizer = settings.build_regularizer()

    def loss(self, batch: Batch) -> LossOutput:
        encoded = self.encoder(batch.frames_BTCHW[:, 0])
        head_BND = self.head(encoded.features_BF)
        loss = LossOutput({"global": global_local_infonce(self.predictor(head_BND), encoded.local_BPC)})
        return regularized(loss, self.regularizer, head_BND)

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
