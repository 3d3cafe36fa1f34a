"""TiCo (arXiv 2206.10698), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of TiCo(o[:, i], t'[:, j]) [ - epsilon ||C||_* ]
    TiCo = 1 - mean_b cos(o_bi, t'_bj) + rho mean_b z_bi^T S_i z_bi

    t'      outputs of the momentum target on the other view
    z       o, normalised
    S_i     moving average of the second moments z z^T of head i

The two views are not exchanged. With more than two, each view but the last is compared with the target on every later
one. The covariance term and S_i, which moves once per step, are of all views but the last.

Heads and target are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings
from manicap.algorithms.momentum import MomentumTarget, cosine_momentum
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
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


class TiCo(TwoViewMethod):
    """Each view agrees with a slow copy's output on the other, and avoids directions that embeddings often take."""

    settings_type: ClassVar[type[Settings]] = TiCoSettings
    covariance_NDD: Tensor

    def __init__(self, settings: TiCoSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.target = MomentumTarget(self.encoder, self.charts.heads)
        self.register_buffer("covariance_NDD", torch.zeros(settings.num_heads, settings.units, settings.units))

    def loss(self, batch: Batch) -> LossOutput:
        num_views = batch.frames_BTCHW.shape[1]
        z_TBND = self.heads_of_views(batch.frames_BTCHW if self.charts.needs_all_views else batch.frames_BTCHW[:, :-1])
        later_TBND = [self.target(view_BCHW) for view_BCHW in batch.frames_BTCHW[:, 1:].unbind(1)]
        # To copy a single view would sum its gradients in another order.
        compared_BND = z_TBND[0] if num_views == 2 else torch.cat(z_TBND[: num_views - 1])
        contrast, moved_NDD = covariance_contrast(compared_BND, self.covariance_NDD, self.settings.covariance_decay)
        if self.training:
            self.covariance_NDD.copy_(moved_NDD)
        distance = mean_over_view_pairs(lambda s, t: 1 + negative_cosine(z_TBND[s], later_TBND[t - 1]), num_views)
        parts = {"invariance": distance, "covariance": self.settings.covariance_weight * contrast}
        return self.charts.regularize(z_TBND, LossOutput(parts))

    def after_step(self, progress: float) -> None:
        self.target.follow(self.encoder, self.charts.heads, cosine_momentum(self.settings.momentum, progress))


class TiCoCPlus(TiCo):
    """TiCo with several heads and their capacity as a regularizer."""

    settings_type = TiCoCPlusSettings
