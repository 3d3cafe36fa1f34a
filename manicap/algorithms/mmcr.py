"""MMCR (arXiv 2303.03307): manifold capacity as the whole objective, over two or more views.

    L = -||C||_*,   C the mean over views of the L2-normalised outputs, one row per image

The head is discarded after training: the probe sees the pooled features.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import torch

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, PresetName, SampleKind, Settings, detached
from manicap.algorithms.image_base import QUICK_NETWORK, ImageSettings, view_features
from manicap.core.ranges import Range, Width
from manicap.losses.gather import world_size
from manicap.losses.mmcr import mmcr
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class MMCRSettings(ImageSettings):
    num_views: Annotated[int, Range(2, 64)] = 2
    """Views per image."""
    units: Width = 128
    """Width of the head's output."""
    hidden_units: Width = 512
    """Width of the head's hidden layer."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """paper: ResNet-50. standard: ResNet-18. quick: the plain network (docs/images.md)."""
        paper = cls()
        if name == "paper":
            return paper
        if name == "standard":
            return replace(paper, encoder="resnet18")
        return replace(paper, **QUICK_NETWORK)


class MMCR(Method):
    """Makes the centroids of each image's views as long and as orthogonal to each other as possible."""

    kind: ClassVar[SampleKind] = "views"
    settings_type: ClassVar[type[Settings]] = MMCRSettings

    def __init__(self, settings: MMCRSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.frames_per_sample = settings.num_views
        self.head = Heads(self.encoder.num_features, 1, settings.units, settings.hidden_units, batch_norm=True)

    def loss(self, batch: Batch) -> LossOutput:
        features = view_features(self.encoder, batch.frames_BTCHW)
        views_BTD = torch.cat([self.head(features_BF) for features_BF in features], dim=1)
        capacity = mmcr(views_BTD)
        num_samples, num_units = len(views_BTD) * world_size(), views_BTD.shape[2]
        bound = math.sqrt(num_samples * min(num_samples, num_units))
        percent = -100 * capacity / bound
        metrics = {
            "capacity_bound": bound,
            "capacity_percent": percent,
            "capacity_pretraining_percentage_error": 100 - percent,
        }
        return LossOutput({"capacity": capacity}, detached(metrics))
