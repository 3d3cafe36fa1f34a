"""What the image methods share: a network, and views that pass through it in separate calls."""

from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from torch import Tensor

from manicap.algorithms.base import MethodContext, Settings
from manicap.core.ranges import Range
from manicap.core.registry import Known, Registry
from manicap.nn.encoders import Encoder
from manicap.nn.plain import PlainCNN
from manicap.nn.pooled import WIDTH_STEP
from manicap.nn.resnet import ResNetEncoder, ResNetName, StemName

IMAGE_ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder", Encoder, {**dict.fromkeys(get_args(ResNetName), ResNetEncoder), "plain": PlainCNN}
)

QUICK_NETWORK: dict[str, Any] = {"encoder": "plain", "encoder_width": 32}
"""Of the preset quick: in minutes it learns more than a narrow ResNet-18 (docs/images.md)."""


@dataclass(frozen=True)
class ImageSettings(Settings):
    """Settings shared by all image methods."""

    encoder: Annotated[str, Known(IMAGE_ENCODERS)] = "resnet50"
    """Backbone: resnet18, resnet34 or resnet50 (arXiv 1512.03385) without its classifier, plain (seven convolutions,
    for a CPU), or package.module:Name."""
    stem: StemName = "cifar"
    """First layer of a ResNet. cifar: 3 x 3, stride 1. stl10: max pooling after it. imagenet: 7 x 7, stride 2, max
    pooling."""
    encoder_width: Annotated[int, Range(WIDTH_STEP, 1024)] = 64
    """Channels of the backbone's first stage, a multiple of 8; 64 is the published network, fewer are faster."""

    def build_encoder(self, context: MethodContext) -> Encoder:
        found = IMAGE_ENCODERS[self.encoder]
        if found is PlainCNN:
            return PlainCNN(context.input_shape, self.encoder_width, context.mean, context.std)
        if found is not ResNetEncoder:
            return found(*context.input_shape)
        name = cast(ResNetName, self.encoder)
        return ResNetEncoder(context.input_shape, name, self.stem, self.encoder_width, context.mean, context.std)

    def problems(self) -> list[str]:
        if self.encoder_width % WIDTH_STEP == 0:
            return []
        return [f"encoder_width must be a positive multiple of {WIDTH_STEP}, got {self.encoder_width}"]


def view_features(encoder: Encoder, frames_BTCHW: Tensor) -> list[Tensor]:
    """Pooled features `[B, F]` of each view.

    Each view has its own call, so that batch statistics are those of one view, as in the code of Barlow Twins, BYOL,
    SimSiam, VICReg and arXiv 2104.13712, whose protocol arXiv 2405.13848 follows. SimCLR's own code normalises both
    views together.
    """
    if len(frames_BTCHW) < 2:
        raise ValueError(
            f"batch normalisation needs at least 2 images in each process's batch, got {len(frames_BTCHW)}"
        )
    return [encoder(view_BCHW).features_BF for view_BCHW in frames_BTCHW.unbind(1)]
