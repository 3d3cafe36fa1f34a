"""Frames as an encoder had better see them: without what never changes.

Most of a frame is the same in every frame, and divided by 255 it is a large constant that the first layer passes on.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from manicap.nn.encoders import Encoded, Encoder

InputName = Literal["scaled", "centred", "standardised", "both"]
"""`scaled`: pixels / 255, as in the papers. `centred`: minus the mean frame. `standardised`: and over the deviation of
each pixel. `both`: scaled, and standardised as further channels."""
SMALLEST_DEVIATION = 0.1
"""Pixels that hardly vary are divided by this, of a range of 1; else one odd pixel would outweigh all others."""


class NormalisedInput(Encoder):
    """An encoder behind `(frames / 255 - mean) / deviation`, per pixel. Both are buffers, saved with the weights.

    An encoder of twice as many channels as the frames have sees `frames / 255` before these.
    """

    input_statistics: ClassVar[tuple[str, ...]] = ("mean", "deviation")
    mean: Tensor
    deviation: Tensor

    def __init__(self, encoder: Encoder, channels: int | None = None) -> None:
        """As it is, nothing is subtracted or divided; `set_statistics` and loading change that."""
        super().__init__(channels or encoder.channels, encoder.height, encoder.width)
        if encoder.channels not in (self.channels, 2 * self.channels):
            raise ValueError(f"an encoder of {encoder.channels} channels does not fit frames of {self.channels}")
        self.encoder = encoder
        self.num_features, self.local_channels = encoder.num_features, encoder.local_channels
        self.local_height, self.local_width = encoder.local_height, encoder.local_width
        shape = (self.channels, encoder.height, encoder.width)
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("deviation", torch.ones(shape))

    def set_statistics(self, statistics: Sequence[Tensor], name: InputName) -> None:
        """From the mean and the deviation of pixels in [0, 1], each [C, H, W]."""
        mean, deviation = statistics
        self.mean.copy_(mean)
        if name in ("standardised", "both"):
            self.deviation.copy_(deviation.clamp_min(SMALLEST_DEVIATION))

    def forward(self, frames_BCHW: Tensor, features_of: int | None = None) -> Encoded:
        encoded: Encoded = self.encoder(self._normalised(frames_BCHW), features_of)
        return encoded

    def layers(self, frames_BCHW: Tensor) -> dict[str, Tensor]:
        return self.encoder.layers(self._normalised(frames_BCHW))

    def _normalised(self, frames_BCHW: Tensor) -> Tensor:
        self._require_frames(frames_BCHW)
        x = frames_BCHW.to(self.mean.dtype)
        scale = 255 if frames_BCHW.dtype == torch.uint8 else 1
        # One multiplication and one addition: the pixels are many.
        normalised = torch.addcmul(-self.mean / self.deviation, x, 1 / (scale * self.deviation))
        return normalised if self.encoder.channels == self.channels else torch.cat([x / scale, normalised], 1)
