"""VICReg (arXiv 2105.04906), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of VICReg(o[:, i], o'[:, j]) [ - epsilon ||C||_* ]
    VICReg = lambda s(z, z') + mu (v(z) + v(z')) / 2 + nu (c(z) + c(z'))

The heads are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, SampleKind, Settings
from manicap.algorithms.image_base import view_features
from manicap.algorithms.two_view import CapacityDefaults, Charts, TwoViewSettings
from manicap.core.ranges import NonNegative
from manicap.losses.variance import covariance_penalty, invariance, variance_hinge


@dataclass(frozen=True)
class VICRegSettings(TwoViewSettings):
    invariance_weight: NonNegative = 25.0
    """lambda: weight of the invariance term (arXiv 2105.04906)."""
    variance_weight: NonNegative = 25.0
    """mu: weight of the mean of the two views' variance terms."""
    covariance_weight: NonNegative = 1.0
    """nu: weight of the sum of the two views' covariance terms."""


@dataclass(frozen=True)
class VICRegCPlusSettings(CapacityDefaults, VICRegSettings):
    """VICReg's settings with the defaults of C+."""


class VICReg(Method):
    """Views agree, units vary enough, and different units are uncorrelated."""

    kind: ClassVar[SampleKind] = "views"
    settings_type: ClassVar[type[Settings]] = VICRegSettings

    def __init__(self, settings: VICRegSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.charts = Charts(self.encoder.num_features, settings)

    def loss(self, batch: Batch) -> LossOutput:
        z_BND, z_other_BND = map(self.charts, view_features(self.encoder, batch.frames_BTCHW))
        variance = (variance_hinge(z_BND) + variance_hinge(z_other_BND)) / 2
        covariance = covariance_penalty(z_BND) + covariance_penalty(z_other_BND)
        parts = {
            "invariance": self.settings.invariance_weight * invariance(z_BND, z_other_BND),
            "variance": self.settings.variance_weight * variance,
            "covariance": self.settings.covariance_weight * covariance,
        }
        return self.charts.regularize(z_BND, z_other_BND, LossOutput(parts))


class VICRegCPlus(VICReg):
    """VICReg with several heads and their capacity as a regularizer."""

    settings_type = VICRegCPlusSettings
