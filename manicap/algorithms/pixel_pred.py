"""Pixel-Pred: the next frame predicted from the encoding of this one (the baseline of arXiv 1906.08226).

L = mean over pixels of ( decoder(o_t) - x_{t+1} )^2
"""

from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, OneHeadSettings, as_images
from manicap.losses.reconstruction import pixel_prediction
from manicap.nn.decoders import NatureDecoder
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


class PixelPred(Method):
    """Predicts the pixels of the next frame. Actions are not used."""

    settings_type = OneHeadSettings
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "head")

    def __init__(self, settings: OneHeadSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.head = Heads(self.encoder.num_features, num_heads=1, num_units=settings.units)
        self.decoder = NatureDecoder(settings.units, *context.input_shape, settings.decoder_kernels(context))

    def loss(self, batch: Batch) -> LossOutput:
        output_BD = self.output(self.encoder(batch.frames_BTCHW[:, 0]))
        next_BCHW = as_images(batch.frames_BTCHW[:, 1])
        return LossOutput({"pixels": pixel_prediction(self.decoder(output_BD), next_BCHW)})

    def output(self, encoded: Encoded) -> Tensor:
        return self.head(encoded.features_BF)[:, 0]
