"""ST-DIM: Spatiotemporal DeepInfoMax (arXiv 1906.08226).

L = L_global + L_local     InfoNCE between frames t and t+1, Eqs 7 and 8 of arXiv 2405.13848 with one linear head
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, MethodContext, OneHeadSettings, encode_times
from manicap.algorithms.predictors import Estimate, PairMethod, PairSettings, SpatialPredictors, mean_over_pairs
from manicap.algorithms.regularization import regularized
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class STDIMSettings(OneHeadSettings, PairSettings):
    """Those of its two bases."""


class STDIM(PairMethod):
    """Predicts the next frame's local features from global and local features."""

    settings_type = STDIMSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: STDIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context, settings.units)
        self.settings = settings
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictors = SpatialPredictors(settings.units, self.encoder.local_channels)
        self.regularizer = settings.build_regularizer()

    def loss(self, batch: Batch) -> LossOutput:
        return self.loss_by(self.predictors.infonce, batch.frames_BTCHW)

    def loss_by(self, estimate: Estimate, frames_BTCHW: Tensor) -> LossOutput:
        """The two terms, by a given estimator, and those of the reconstruction and the regularizer."""
        encoded = encode_times(self.encoder, frames_BTCHW, self.settings.predicting_frames)
        head_TBND = self.head(encoded.features_BF)
        terms = mean_over_pairs(self.settings, estimate, head_TBND, encoded.local_BPC)
        terms |= self.reconstruction(frames_BTCHW, encoded.features_BF)
        return regularized(LossOutput(terms), self.regularizer, head_TBND[: len(frames_BTCHW)])

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
