"""Global-T-DIM: the ablation of ST-DIM without space (arXiv 1906.08226).

L = InfoNCE( W o_t, o_{t+1} )    between the global features of consecutive frames
"""

from typing import ClassVar

from torch import Tensor, nn

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, encode_both
from manicap.algorithms.predictors import mean_parts
from manicap.algorithms.st_dim import STDIMSettings
from manicap.losses.infonce import infonce
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


class GlobalTDIM(Method):
    """One linear head; a bilinear score between the outputs of the two frames."""

    settings_type = STDIMSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: STDIMSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.directions = settings.directions
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.predictor = nn.Linear(settings.units, settings.units)

    def loss(self, batch: Batch) -> LossOutput:
        now, after = encode_both(self.encoder, batch.frames_BTCHW)
        o_BD, o_next_BD = self.output(now), self.output(after)
        forward = {"global": infonce(self.predictor(o_BD), o_next_BD)}
        if self.directions == "forward":
            return LossOutput(forward)
        return LossOutput(mean_parts(forward, {"global": infonce(self.predictor(o_next_BD), o_BD)}))

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
