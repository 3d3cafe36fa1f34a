"""A plain convolutional network for images, made for minutes on a CPU."""

from collections.abc import Sequence

from torch import Tensor, nn

from manicap.nn.pooled import PooledEncoder

PATCH_CHANNELS = 24
LEAST_SIDE = 9
"""Of images that leave one position after the last block."""


class PlainCNN(PooledEncoder):
    """Images -> `Encoded`: patches of 2 x 2 pixels, then three blocks; the last map, and its mean over positions.

    patches    24 channels k2 s1, no padding, ReLU
    block      k3, max pooling k2 s2, normalisation, ReLU, k3, normalisation, ReLU: `width` channels in the first block,
               4 `width` in the other two

    The layout of arXiv 2404.00498, which learns CIFAR-10 from labels in seconds: few layers, whose many channels keep
    vector units busy. Deviations: the patches are learned, not fixed by whitening; ReLU instead of GELU; pooled by the
    mean instead of the maximum.
    """

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        width: int = 64,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
    ) -> None:
        super().__init__(input_shape, width, mean, std)
        if min(self.height, self.width) < LEAST_SIDE:
            raise ValueError(
                f"PlainCNN needs images of at least {LEAST_SIDE} x {LEAST_SIDE} pixels,"
                f" got {self.height} x {self.width}"
            )
        self.patches = nn.Conv2d(self.channels, PATCH_CHANNELS, 2)
        self.blocks = nn.Sequential(
            _block(PATCH_CHANNELS, width), _block(width, 4 * width), _block(4 * width, 4 * width)
        )
        self.local_channels = self.num_features = 4 * width
        self.local_height, self.local_width = ((size - 1) // 8 for size in (self.height, self.width))

    def feature_map(self, x_BCHW: Tensor) -> Tensor:
        map_BCHW: Tensor = self.blocks(self.patches(x_BCHW).relu_())
        return map_BCHW


def _block(num_inputs: int, num_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(num_inputs, num_outputs, 3, padding=1, bias=False),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(num_outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(num_outputs, num_outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(num_outputs),
        nn.ReLU(inplace=True),
    )
