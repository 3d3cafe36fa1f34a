"""Decoders: from features back to pixels, for the VAE and pixel-prediction baselines."""

from itertools import pairwise

from torch import Tensor, nn

from manicap.nn.encoders import NATURE_CHANNELS, NATURE_KERNELS, Kernels, least_side, nature_sizes
from manicap.nn.initialization import orthogonal


class NatureDecoder(nn.Module):
    """NatureCNN in reverse (the decoder of arXiv 1906.08226): features `[B, F]` -> images `[B, C, H, W]` in [0, 1].

    A linear layer to the last feature map, then four transposed convolutions, with ReLU between and a sigmoid at the
    end. Each pads its output to NatureCNN's size at that layer, so any input size is restored. Initialised like
    NatureCNN.

    Deviations: the linear layer is orthogonal too; the 2019 code leaves it at torch's default.
    """

    def __init__(
        self,
        num_features: int,
        channels: int = 1,
        height: int = 210,
        width: int = 160,
        kernels: Kernels = NATURE_KERNELS,
    ) -> None:
        super().__init__()
        heights, widths = nature_sizes(height, kernels), nature_sizes(width, kernels)
        if min(num_features, channels) < 1 or min(heights[-1], widths[-1]) < 1:
            least = least_side(kernels)
            raise ValueError(
                f"NatureDecoder needs positive num_features and channels and images of at least {least} x {least}, "
                f"got {num_features}, {channels} and {height} x {width}"
            )
        self.last_map = (NATURE_CHANNELS[-1], heights[-1], widths[-1])
        self.linear = nn.Linear(num_features, NATURE_CHANNELS[-1] * heights[-1] * widths[-1])
        sizes = list(zip(heights, widths, strict=True))[::-1]
        depths = [*NATURE_CHANNELS[::-1], channels]
        layers: list[nn.Module] = []
        for (inputs, outputs), (small, large), (kernel, stride) in zip(
            pairwise(depths), pairwise(sizes), kernels[::-1], strict=True
        ):
            # The forward convolution dropped this many rows and columns.
            dropped = (large[0] - (small[0] - 1) * stride - kernel, large[1] - (small[1] - 1) * stride - kernel)
            layers += [nn.ConvTranspose2d(inputs, outputs, kernel, stride, output_padding=dropped), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1], nn.Sigmoid())
        orthogonal(self)

    def forward(self, features_BF: Tensor) -> Tensor:
        map_BCHW = self.linear(features_BF).relu().unflatten(1, self.last_map)
        image_BCHW: Tensor = self.layers(map_BCHW)
        return image_BCHW
