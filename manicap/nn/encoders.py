"""Frame encoders: a local feature map and a flat feature vector."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from manicap.nn.initialization import orthogonal


class Encoded(NamedTuple):
    """An encoder's output for a batch of frames."""

    local_BPC: Tensor
    """The local feature map, positions in row-major order."""
    features_BF: Tensor
    """The last layer, flattened channels first."""


class Encoder(nn.Module):
    """Frames `[B, C, H, W]` -> `Encoded`. Frames are uint8, divided by 255 inside, or floats already in [0, 1].

    `features_of` limits `features_BF` to the first frames: for a pair (t, t+1), most losses need only the first.
    The input size, and with it the sizes below, is fixed at construction.
    """

    pools: ClassVar[bool] = False
    """Whether features are means over positions: then it can learn from frames of any size."""
    input_statistics: ClassVar[tuple[str, ...]] = ()
    """Buffers that hold statistics of the data, by which frames are normalised."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        if min(channels, height, width) < 1:
            raise ValueError(f"an encoder needs a positive input size, got {channels} x {height} x {width}")
        self.channels, self.height, self.width = channels, height, width
        self.local_channels = self.local_height = self.local_width = self.num_features = 0

    def layers(self, frames_BCHW: Tensor) -> dict[str, Tensor]:
        """The output of each layer [B, ...], by name, the first one first; by default the two parts of `Encoded`."""
        encoded: Encoded = self(frames_BCHW)
        return {"local map": encoded.local_BPC, "backbone": encoded.features_BF}

    def see_as(self, other: "Encoder") -> None:
        """Normalise frames as another encoder of the same kind does."""
        for name in self.input_statistics:
            getattr(self, name).copy_(getattr(other, name))

    def _require_frames(self, frames_BCHW: Tensor) -> None:
        expected = (self.channels, self.height, self.width)
        fixed = 1 if self.pools and self.training else 3
        if frames_BCHW.ndim != 4 or tuple(frames_BCHW.shape[1 : 1 + fixed]) != expected[:fixed]:
            raise ValueError(
                f"encoder built for frames [B, {', '.join(map(str, expected))}], got {list(frames_BCHW.shape)}"
            )
        if frames_BCHW.dtype != torch.uint8 and not frames_BCHW.is_floating_point():
            raise ValueError(f"encoder needs uint8 frames, or floats in [0, 1], got {frames_BCHW.dtype}")


# kernel, stride of the four convolutions (arXiv 2405.13848, Table 4)
NATURE_KERNELS = ((8, 4), (4, 2), (4, 2), (3, 1))
NATURE_CHANNELS = (32, 64, 128, 64)


SMALL_KERNELS = ((4, 2), (4, 2), (4, 2), (3, 1))
LARGE_SIDE = 128
"""Frames with a shorter side would leave NatureCNN's first stride of 4 only a few positions."""
Kernels = tuple[tuple[int, int], ...]


def fitting_kernels(height: int, width: int) -> Kernels:
    return NATURE_KERNELS if min(height, width) >= LARGE_SIDE else SMALL_KERNELS


def least_side(kernels: Kernels) -> int:
    """Of frames that leave one position after the last convolution."""
    side = 1
    for kernel, stride in reversed(kernels):
        side = (side - 1) * stride + kernel
    return side


def nature_sizes(size: int, kernels: Kernels = NATURE_KERNELS) -> list[int]:
    """Length of one side of the input and after each convolution; the last is 0 or less if the input is too small.

    `nature_sizes(210) == [210, 51, 24, 11, 9]`
    """
    sizes = [size]
    for kernel, stride in kernels:
        sizes.append((sizes[-1] - kernel) // stride + 1)
    return sizes


class NatureCNN(Encoder):
    """The encoder of DIM-UA and DIM-C+ (arXiv 2405.13848, Table 4): four convolutions, ReLU after each, flattened.

    32 k8 s4, 64 k4 s2, 128 k4 s2 (the local feature map), 64 k3 s1. At 210 x 160: 11 x 8 positions of 128 channels,
    3456 features. Orthogonal initialisation with gain sqrt(2), zero bias.

    All activations are channels last: oneDNN is faster with this layout, and the feature map is B x P x C without a
    copy. At batch 128 on two threads, forward and backward take 231 ms, compared with 358 with a plain first
    convolution and 386 with channels first throughout.
    """

    kernels: Kernels = NATURE_KERNELS

    def __init__(self, channels: int = 1, height: int = 210, width: int = 160) -> None:
        super().__init__(channels, height, width)
        heights, widths = nature_sizes(height, self.kernels), nature_sizes(width, self.kernels)
        if min(heights[-1], widths[-1]) < 1:
            least = least_side(self.kernels)
            raise ValueError(
                f"{type(self).__name__} needs frames of at least {least} x {least}, got {height} x {width}"
            )
        inputs = (channels, *NATURE_CHANNELS)
        self.conv1, self.conv2, self.conv3, self.conv4 = (
            nn.Conv2d(inputs[i], inputs[i + 1], kernel, stride) for i, (kernel, stride) in enumerate(self.kernels)
        )
        orthogonal(self)
        self.local_channels, self.local_height, self.local_width = NATURE_CHANNELS[2], heights[3], widths[3]
        self.num_features = NATURE_CHANNELS[3] * heights[4] * widths[4]

    def layers(self, frames_BCHW: Tensor) -> dict[str, Tensor]:
        self._require_frames(frames_BCHW)
        first = self._first(frames_BCHW).relu()
        second = self.conv2(first).relu()
        local = self.conv3(second).relu()
        last = self.conv4(local).relu()
        return {"convolution 1": first, "convolution 2": second, "local map": local, "backbone": last}

    def forward(self, frames_BCHW: Tensor, features_of: int | None = None) -> Encoded:
        self._require_frames(frames_BCHW)
        x = self._first(frames_BCHW).relu_()
        x = self.conv2(x).relu_()
        local_BCHW = self.conv3(x).relu_()
        features_BCHW = self.conv4(local_BCHW[:features_of]).relu_()
        return Encoded(_positions(local_BCHW), features_BCHW.flatten(1))

    def _first(self, frames_BCHW: Tensor) -> Tensor:
        return frame_convolution(frames_BCHW, self.conv1.weight, self.conv1.bias, self.kernels[0][1])


class SmallCNN(NatureCNN):
    """NatureCNN with a first convolution k4 s2, for frames from 38 x 38.

    At 96 x 96, 10 x 10 positions and 4096 features, where NatureCNN has 4 x 4 and 256; about as much work as NatureCNN
    at 210 x 160.
    """

    kernels: Kernels = SMALL_KERNELS


class FittingCNN(SmallCNN):
    """NatureCNN for frames whose sides have at least 128 pixels, SmallCNN for smaller ones."""

    def __init__(self, channels: int = 1, height: int = 210, width: int = 160) -> None:
        self.kernels = fitting_kernels(height, width)
        super().__init__(channels, height, width)


def frame_convolution(frames_BCHW: Tensor, weight_OCHW: Tensor, bias_O: Tensor | None, stride: int) -> Tensor:
    """`conv2d(frames / 255, weight, bias, stride)` of frames that need no gradient, channels last.

    With one input channel, a k8 s4 convolution leaves vector units idle. Stacking each 4 x 4 block of pixels into 16
    channels makes it a 2 x 2 convolution of stride 1 with the same weights, rearranged: 28 ms forward and backward at
    batch 128 x 1 x 210 x 160 on two threads, compared with 147 for a plain convolution and 40 for patches and one
    matrix multiplication. The division by 255 is folded into the weights, which are fewer than the pixels.
    """
    B, C, H, W = frames_BCHW.shape
    kernel = weight_OCHW.shape[-1]
    assert kernel % stride == 0, (kernel, stride)
    blocks = kernel // stride
    # Size in blocks of the area that the kernel reaches; rows and columns beyond it are never read.
    h, w = (H - kernel) // stride + blocks, (W - kernel) // stride + blocks
    stacked = frames_BCHW[:, :, : h * stride, : w * stride].reshape(B, C, h, stride, w, stride)
    stacked = stacked.permute(0, 2, 4, 1, 3, 5).reshape(B, h, w, C * stride * stride)
    if frames_BCHW.dtype == torch.uint8:
        weight_OCHW = weight_OCHW / 255
    weight = weight_OCHW.reshape(-1, C, blocks, stride, blocks, stride).permute(0, 1, 3, 5, 2, 4)
    weight = weight.reshape(-1, C * stride * stride, blocks, blocks)
    return F.conv2d(stacked.to(weight.dtype).permute(0, 3, 1, 2), weight, bias_O)


class ImpalaCNN(Encoder):
    """The residual encoder of IMPALA (arXiv 1802.01561, Figure 3), with any number of blocks.

    A block is a convolution k3, max pooling k3 s2 and two residual pairs of k3. The local feature map is the output of
    the second-to-last block, after ReLU. At 210 x 160 with the default depths, there are 27 x 20 positions of 32
    channels and 4480 features (14 x 10 x 32). Initialised like NatureCNN.

    Deviations: four blocks, as arXiv 1906.08226 uses for full-size frames, where IMPALA has three; no linear layer
    at the end (heads have their own).
    """

    def __init__(
        self, channels: int = 1, height: int = 210, width: int = 160, depths: Sequence[int] = (16, 32, 32, 32)
    ) -> None:
        super().__init__(channels, height, width)
        if len(depths) < 2 or min(depths) < 1:
            raise ValueError(f"ImpalaCNN needs at least two positive depths, got {list(depths)}")
        smallest = 2 ** len(depths)
        if min(height, width) < smallest:
            raise ValueError(
                f"ImpalaCNN of {len(depths)} blocks needs frames of at least {smallest} x {smallest}, "
                f"got {height} x {width}"
            )
        inputs = (channels, *depths)
        self.blocks = nn.ModuleList(_ImpalaBlock(inputs[i], depth) for i, depth in enumerate(depths))
        orthogonal(self)
        sizes = [(height, width)]
        for _ in depths:
            sizes.append(((sizes[-1][0] + 1) // 2, (sizes[-1][1] + 1) // 2))
        self.local_channels, (self.local_height, self.local_width) = depths[-2], sizes[-2]
        self.num_features = depths[-1] * sizes[-1][0] * sizes[-1][1]

    def forward(self, frames_BCHW: Tensor, features_of: int | None = None) -> Encoded:
        self._require_frames(frames_BCHW)
        dtype = next(self.parameters()).dtype
        x = frames_BCHW.to(dtype) / 255 if frames_BCHW.dtype == torch.uint8 else frames_BCHW.to(dtype)
        x = x.contiguous(memory_format=torch.channels_last)
        for block in self.blocks[:-1]:
            x = block(x)
        local_BCHW = x.relu()
        features_BCHW = self.blocks[-1](x[:features_of]).relu()
        return Encoded(_positions(local_BCHW), features_BCHW.flatten(1))


class _ImpalaBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.residuals = nn.ModuleList(nn.Conv2d(out_channels, out_channels, 3, padding=1) for _ in range(4))

    def forward(self, x_BCHW: Tensor) -> Tensor:
        x = F.max_pool2d(self.conv(x_BCHW), 3, stride=2, padding=1)
        for first, second in zip(self.residuals[::2], self.residuals[1::2], strict=True):
            x = x + second(first(x.relu()).relu_())
        return x


def _positions(map_BCHW: Tensor) -> Tensor:
    """B x C x H x W -> B x P x C: a view if the map is channels last."""
    return map_BCHW.permute(0, 2, 3, 1).flatten(1, 2)
