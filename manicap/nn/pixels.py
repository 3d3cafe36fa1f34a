"""A linear map from features to a coarse picture of the frame: what it can reconstruct has not been lost."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from manicap.nn.normalised_input import SMALLEST_DEVIATION

CELLS = (42, 40)
"""Most rows and columns of the picture. At 210 x 160 a cell is 5 x 4 pixels, at 64 x 64 it is 2 x 2."""


class LinearPixels(nn.Module):
    """`pixels(features)` reconstructs a picture, W f + b [B, cells]; `pixels.picture(frames)` is its target.

    A picture is a frame whose pixels are normalised by their mean and deviation, averaged in cells. W and b start at 0.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, num_features: int, input_shape: tuple[int, int, int]) -> None:
        super().__init__()
        channels, height, width = input_shape
        self.cell = (math.ceil(height / CELLS[0]), math.ceil(width / CELLS[1]))
        num_cells = channels * (height // self.cell[0]) * (width // self.cell[1])
        # Uses no random numbers, so the other weights of a method are the same with and without it.
        self.weight = nn.Parameter(torch.zeros(num_cells, num_features))
        self.bias = nn.Parameter(torch.zeros(num_cells))
        self.register_buffer("mean", torch.zeros(input_shape))
        self.register_buffer("deviation", torch.ones(input_shape))

    def set_statistics(self, mean: Tensor, deviation: Tensor) -> None:
        """Set mean and deviation of pixels in [0, 1], each [C, H, W]."""
        self.mean.copy_(mean)
        self.deviation.copy_(deviation.clamp_min(SMALLEST_DEVIATION))

    def picture(self, frames_BCHW: Tensor) -> Tensor:
        """Pictures [B, cells] of uint8 frames, or of floats in [0, 1]."""
        scale = 255 if frames_BCHW.dtype == torch.uint8 else 1
        normalised = (frames_BCHW.to(self.mean.dtype) / scale - self.mean) / self.deviation
        return F.avg_pool2d(normalised, self.cell).flatten(1)

    def forward(self, features_BF: Tensor) -> Tensor:
        return F.linear(features_BF, self.weight, self.bias)
