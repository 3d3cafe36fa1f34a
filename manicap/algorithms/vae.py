"""VAE: a variational autoencoder of single frames (arXiv 1312.6114), the generative baseline of arXiv 1906.08226.

    L = || x - decoder(z) ||^2 + beta KL( N(m, s^2) || N(0, 1) ),     z = m + s * noise

The probe sees the mean m.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manicap.algorithms.base import Batch, FrameSettings, LossOutput, Method, MethodContext, Settings, as_images
from manicap.core.ranges import NonNegative, Width
from manicap.losses.pairs import in_float32
from manicap.losses.reconstruction import gaussian_kl, squared_error
from manicap.nn.decoders import NatureDecoder
from manicap.nn.encoders import Encoded
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class VAESettings(FrameSettings):
    units: Width = 256
    """Width of the latent vector."""
    beta: NonNegative = 1.0
    """Weight of the divergence from the prior."""


class VAE(Method):
    """Reconstructs a frame through a noisy latent vector: a variational autoencoder."""

    settings_type: ClassVar[type[Settings]] = VAESettings
    frames_per_sample = 1
    inference_parts: ClassVar[tuple[str, ...]] = ("encoder", "posterior")

    def __init__(self, settings: VAESettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.posterior = Heads(self.encoder.num_features, num_heads=2, num_units=settings.units)
        self.decoder = NatureDecoder(settings.units, *context.input_shape, settings.decoder_kernels(context))

    def loss(self, batch: Batch) -> LossOutput:
        frames_BCHW = batch.frames_BTCHW[:, 0]
        posterior_BND = self.posterior(self.encoder(frames_BCHW).features_BF)
        mean_BD, log_variance_BD = in_float32(posterior_BND).unbind(1)
        noise_BD = torch.randn(mean_BD.shape, generator=batch.generator, device=mean_BD.device, dtype=mean_BD.dtype)
        z_BD = mean_BD + (log_variance_BD / 2).exp() * noise_BD
        parts = {
            "reconstruction": squared_error(self.decoder(z_BD), as_images(frames_BCHW)),
            "divergence": self.settings.beta * gaussian_kl(mean_BD, log_variance_BD),
        }
        return LossOutput(parts)

    def output(self, encoded: Encoded) -> Tensor:
        return self.posterior(encoded.features_BF)[:, 0]
