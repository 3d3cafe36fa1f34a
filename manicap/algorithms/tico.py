"""TiCo (arXiv 2206.10698), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of TiCo(o[:, i], t'[:, j]) [ - epsilon ||C||_* ]
    TiCo = 1 - mean_b cos(o_bi, t'_bj) + rho mean_b z_bi^T S_i z_bi

    t'      outputs of the momentum target on the other view
    z       o, normalised
    S_i     moving average of the second moments z z^T of head i

Heads and target are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, SampleKind, Settings
from manicap.algorithms.image_base import view_features
from manicap.algorithms.momentum import MomentumTarget, cosine_momentum
from manicap.algorithms.two_view import CapacityDefaults, Charts, TwoViewSettings
from manicap.core.ranges import Fraction, NonNegative
from manicap.losses.regression import negative_cosine
from manicap.losses.tico import covariance_contrast


@dataclass(frozen=True)
class TiCoSettings(TwoViewSettings):
    covariance_weight: NonNegative = 8.0
    """rho: weight of the covariance term."""
    covariance_decay: Fraction = 0.9
    """beta: fraction of the running covariance kept at each step."""
    momentum: Fraction = 0.99
    """Momentum of the target at the start of the run; it rises to 1 at the end along half a cosine."""


@dataclass(frozen=True)
class TiCoCPlusSettings(CapacityDefaults, TiCoSettings):
    """TiCo's settings with the defaults of C+."""


class TiCo(Method):
    """Each view agrees with a slow copy's output on the other, and avoids directions that embeddings often take."""

    kind: ClassVar[SampleKind] = "views"
    settings_type: ClassVar[type[Settings]] = TiCoSettings
    covariance_NDD: Tensor

    def __init__(self, settings: TiCoSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.charts = Charts(self.encoder.num_features, settings)
        self.target = MomentumTarget(self.encoder, self.charts.heads)
        self.register_buffer("covariance_NDD", torch.zeros(settings.num_heads, settings.units, settings.units))

    def loss(self, batch: Batch) -> LossOutput:
        (features_BF,) = view_features(self.encoder, batch.frames_BTCHW[:, :1])
        z_BND = self.charts(features_BF)
        target_BND = self.target(batch.frames_BTCHW[:, 1])
        contrast, moved_NDD = covariance_contrast(z_BND, self.covariance_NDD, self.settings.covariance_decay)
        if self.training:
            self.covariance_NDD.copy_(moved_NDD)
        parts = {
            "invariance": 1 + negative_cosine(z_BND, target_BND),
            "covariance": self.settings.covariance_weight * contrast,
        }
        z_other_BND = None
        if self.charts.needs_other_view:
            (features_other_BF,) = view_features(self.encoder, batch.frames_BTCHW[:, 1:])
            z_other_BND = self.charts(features_other_BF)
        return self.charts.regularize(z_BND, z_other_BND, LossOutput(parts))

    def after_step(self, progress: float) -> None:
        self.target.follow(self.encoder, self.charts.heads, cosine_momentum(self.settings.momentum, progress))


class TiCoCPlus(TiCo):
    """TiCo with several heads and their capacity as a regularizer."""

    settings_type = TiCoCPlusSettings
