"""Global-T-DIM: the ablation of ST-DIM without space (arXiv 1906.08226).

L = InfoNCE( W o_t, o_{t+1} )    between the global features of consecutive frames
"""

from typing import ClassVar

from torch import Tensor, nn

from manicap.algorithms.base import Batch, LossOutput, MethodContext, encode_times
from manicap.algorithms.predictors import PairMethod, Terms, mean_over_pairs
from manicap.algorithms.regularization import regularized
from manicap.algorithms.st_dim import STDIMSettings
from manicap.losses.infonce import infonce
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


class GlobalTDIM(PairMethod):
    """ST-DIM without space: global features of consecutive frames."""

    settings_type = STDIMSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: STDIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context, settings.units)
        self.settings = settings
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictor = nn.Linear(settings.units, settings.units)
        self.regularizer = settings.build_regularizer()

    def loss(self, batch: Batch) -> LossOutput:
        encoded = encode_times(self.encoder, batch.frames_BTCHW)
        o_TBD = self.output(encoded)
        terms = mean_over_pairs(self.settings, self.estimate, self.predictor(o_TBD), o_TBD)
        terms |= self.reconstruction(batch.frames_BTCHW, encoded.features_BF)
        return regularized(LossOutput(terms), self.regularizer, o_TBD[: len(batch.frames_BTCHW), None])

    @staticmethod
    def estimate(predictions_BD: Tensor, o_BD: Tensor, o_next_BD: Tensor) -> Terms:
        return {"global": infonce(predictions_BD, o_next_BD)}

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
