"""What networks of images share: pixels normalised inside, and features that are means over positions."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from manicap.nn.encoders import Encoded, Encoder

WIDTH_STEP = 8
"""Widths are multiples of this. With 4 channels and channels-last layout, the gradient of a 1 x 1 convolution of stride
2 writes past its end and crashes (oneDNN in torch 2.13, brgconv_strided:avx2): its vectors are 8 numbers long."""


class PooledEncoder(Encoder):
    """Images -> `Encoded`: a feature map, and its mean over positions as the features.

    uint8 images are divided by 255 and normalised with the dataset's `mean` and `std`, which are saved with the
    weights; floats are assumed to be normalised views already.
    """

    pools: ClassVar[bool] = True
    input_statistics: ClassVar[tuple[str, ...]] = ("mean", "std")
    mean: Tensor
    std: Tensor

    def __init__(
        self, input_shape: tuple[int, int, int], width: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        """`width` is the number of channels of the first layers; a network without statistics subtracts nothing."""
        super().__init__(*input_shape)
        if width < 1 or width % WIDTH_STEP:
            raise ValueError(f"{type(self).__name__} needs a width that is a multiple of {WIDTH_STEP}, got {width}")
        for statistic, values, neutral in (("mean", mean, 0.0), ("std", std, 1.0)):
            if len(values) not in (0, self.channels):
                raise ValueError(
                    f"{statistic} needs one value for each of {self.channels} channels, got {list(values)}"
                )
            self.register_buffer(statistic, torch.tensor(list(values) or [neutral] * self.channels)[:, None, None])
        # With 8 channels, channels last and 3 threads, oneDNN (torch 2.13) corrupts memory in the backward pass.
        self.memory_format = torch.channels_last if width >= 16 else torch.contiguous_format

    def feature_map(self, x_BCHW: Tensor) -> Tensor:
        """`[B, num_features, H', W']` of normalised images."""
        raise NotImplementedError

    def forward(self, frames_BCHW: Tensor, features_of: int | None = None) -> Encoded:
        self._require_frames(frames_BCHW)
        x = frames_BCHW
        if x.dtype == torch.uint8:
            x = (x.to(self.mean.dtype) / 255 - self.mean) / self.std
        map_BCHW = self.feature_map(x.contiguous(memory_format=self.memory_format))
        local_BPC = map_BCHW.permute(0, 2, 3, 1).flatten(1, 2)
        return Encoded(local_BPC, map_BCHW[:features_of].mean((2, 3)))
