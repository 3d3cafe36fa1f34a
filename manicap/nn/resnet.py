"""ResNet-18, -34 and -50 without the classifier (arXiv 1512.03385), for small and for large images.

Parameters have torchvision's names and initialisation, so its weights load into `ResNet`:

    encoder.resnet.load_state_dict({name: w for name, w in weights.items() if not name.startswith("fc.")})
"""

import math
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from manicap.nn.pooled import PooledEncoder

ResNetName = Literal["resnet18", "resnet34", "resnet50"]
StemName = Literal["cifar", "stl10", "imagenet"]


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, num_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(num_inputs, width * self.expansion, stride)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x_BCHW)).relu_()
        y = self.bn2(self.conv2(y))
        return (y + self.downsample(x_BCHW)).relu_()


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1 convolutions beside a shortcut; the stride is in the 3 x 3 one, as in torchvision."""

    expansion = 4

    def __init__(self, num_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.downsample = _shortcut(num_inputs, width * self.expansion, stride)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x_BCHW)).relu_()
        y = self.bn2(self.conv2(y)).relu_()
        y = self.bn3(self.conv3(y))
        return (y + self.downsample(x_BCHW)).relu_()


def _shortcut(num_inputs: int, num_outputs: int, stride: int) -> nn.Module:
    """A 1 x 1 convolution where the shape changes, else the identity (which has no parameters to name)."""
    if stride == 1 and num_inputs == num_outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(num_inputs, num_outputs, 1, stride, bias=False), nn.BatchNorm2d(num_outputs))


# block, number of blocks in each of the four stages (arXiv 1512.03385, Table 1)
_STAGES: dict[ResNetName, tuple[type[BasicBlock | Bottleneck], tuple[int, int, int, int]]] = {
    "resnet18": (BasicBlock, (2, 2, 2, 2)),
    "resnet34": (BasicBlock, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
}
# kernel and stride of the first convolution, and whether max pooling k3 s2 follows it
_STEMS: dict[StemName, tuple[int, int, bool]] = {
    "cifar": (3, 1, False),
    "stl10": (3, 1, True),
    "imagenet": (7, 2, True),
}


class ResNet(nn.Module):
    """Images `[B, C, H, W]` -> the feature map of the last stage, `[B, num_channels, H', W']`.

    `width` is the number of channels of the first stage; the others have 2, 4 and 8 times as many. 64 is the
    published network: 11,176,512 parameters for ResNet-18 and 23,508,032 for ResNet-50 with the stem `imagenet`, 7,680
    fewer with the other stems.
    """

    def __init__(self, name: ResNetName, stem: StemName = "cifar", width: int = 64, channels: int = 3) -> None:
        super().__init__()
        if min(width, channels) < 1:
            raise ValueError(f"ResNet needs a positive width and positive channels, got {width} and {channels}")
        block, depths = _STAGES[name]
        kernel, stride, pools = _STEMS[stem]
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if pools else nn.Identity()
        self.num_channels = width
        self.layer1 = self._stage(block, depths[0], width, stride=1)
        self.layer2 = self._stage(block, depths[1], 2 * width, stride=2)
        self.layer3 = self._stage(block, depths[2], 4 * width, stride=2)
        self.layer4 = self._stage(block, depths[3], 8 * width, stride=2)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def _stage(self, block: type[BasicBlock | Bottleneck], depth: int, width: int, stride: int) -> nn.Sequential:
        blocks: list[nn.Module] = []
        for index in range(depth):
            blocks.append(block(self.num_channels, width, stride if index == 0 else 1))
            self.num_channels = width * block.expansion
        return nn.Sequential(*blocks)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        x = self.maxpool(self.bn1(self.conv1(x_BCHW)).relu_())
        map_BCHW: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return map_BCHW


class ResNetEncoder(PooledEncoder):
    """A ResNet of images: the last stage's feature map, and its mean over positions."""

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        name: ResNetName,
        stem: StemName = "cifar",
        width: int = 64,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
    ) -> None:
        super().__init__(input_shape, width, mean, std)
        self.resnet = ResNet(name, stem, width, self.channels)
        _, stride, pools = _STEMS[stem]
        shrinking = 8 * stride * (2 if pools else 1)  # stages 2 to 4 halve, each rounding up
        self.local_channels = self.num_features = self.resnet.num_channels
        self.local_height, self.local_width = (math.ceil(size / shrinking) for size in (self.height, self.width))

    def feature_map(self, x_BCHW: Tensor) -> Tensor:
        map_BCHW: Tensor = self.resnet(x_BCHW)
        return map_BCHW
