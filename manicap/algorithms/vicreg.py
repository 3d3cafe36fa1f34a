"""VICReg (arXiv 2105.04906), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of VICReg(o[:, i], o'[:, j]) [ - epsilon ||C||_* ]
    VICReg = lambda s(z, z') + mu (v(z) + v(z')) / 2 + nu (c(z) + c(z'))

Averaged over pairs of more than two views, the second term is mu times the mean of v over the views, the third 2 nu
times that of c.

The heads are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
from manicap.core.ranges import NonNegative
from manicap.losses.variance import covariance_penalty, invariance, variance_hinge


@dataclass(frozen=True)
class VICRegSettings(TwoViewSettings):
    invariance_weight: NonNegative = 25.0
    """lambda: weight of the invariance term (arXiv 2105.04906)."""
    variance_weight: NonNegative = 25.0
    """mu: weight of the mean of the views' variance terms."""
    covariance_weight: NonNegative = 1.0
    """nu: weight of the sum of two views' covariance terms."""


@dataclass(frozen=True)
class VICRegCPlusSettings(CapacityDefaults, VICRegSettings):
    """VICReg's settings with the defaults of C+."""


class VICReg(TwoViewMethod):
    """Views agree, units vary enough, and different units are uncorrelated."""

    settings_type: ClassVar[type[Settings]] = VICRegSettings

    def __init__(self, settings: VICRegSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings

    def loss(self, batch: Batch) -> LossOutput:
        z_TBND = self.heads_of_views(batch.frames_BTCHW)
        variance = torch.stack([variance_hinge(z_BND) for z_BND in z_TBND]).mean()
        covariance = 2 * torch.stack([covariance_penalty(z_BND) for z_BND in z_TBND]).mean()
        distance = mean_over_view_pairs(lambda s, t: invariance(z_TBND[s], z_TBND[t]), len(z_TBND))
        parts = {
            "invariance": self.settings.invariance_weight * distance,
            "variance": self.settings.variance_weight * variance,
            "covariance": self.settings.covariance_weight * covariance,
        }
        return self.charts.regularize(z_TBND, LossOutput(parts))


class VICRegCPlus(VICReg):
    """VICReg with several heads and their capacity as a regularizer."""

    settings_type = VICRegCPlusSettings
