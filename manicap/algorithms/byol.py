"""BYOL (arXiv 2006.07733), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of R(p[:, i], t'[:, j]) + R(p'[:, i], t[:, j]) [ - epsilon ||C||_* ]
    R(p, t) = mean_b | p / |p| - t / |t| |^2

    p, p'   predictions made from the heads' outputs on the two views
    t, t'   outputs of the momentum target, a slow copy of encoder and heads

Heads, predictors and target are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings
from manicap.algorithms.momentum import MomentumTarget, cosine_momentum
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
from manicap.core.ranges import Fraction, Width
from manicap.losses.regression import normalized_regression
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class BYOLSettings(TwoViewSettings):
    layer_widths: ClassVar[tuple[str, ...]] = ("units", "hidden_units", "predictor_units")

    predictor_units: Width = 2048
    """Width of the hidden layer of each head's predictor."""
    momentum: Fraction = 0.996
    """Momentum of the target at the start of the run; it rises to 1 at the end along half a cosine."""


@dataclass(frozen=True)
class BYOLCPlusSettings(CapacityDefaults, BYOLSettings):
    """BYOL's settings with the defaults of C+."""


class BYOL(TwoViewMethod):
    """Each view predicts the output of a slow copy of the network on the other view."""

    settings_type: ClassVar[type[Settings]] = BYOLSettings

    def __init__(self, settings: BYOLSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.momentum = settings.momentum
        self.predictors = Heads(
            settings.units, settings.num_heads, settings.units, settings.predictor_units, batch_norm=True
        )
        self.target = MomentumTarget(self.encoder, self.charts.heads)

    def loss(self, batch: Batch) -> LossOutput:
        z_TBND = self.heads_of_views(batch.frames_BTCHW)
        target_TBND = [self.target(view_BCHW) for view_BCHW in batch.frames_BTCHW.unbind(1)]
        p_TBND = [self.predictors(z_BND) for z_BND in z_TBND]

        def both_ways(s: int, t: int) -> Tensor:
            return normalized_regression(p_TBND[s], target_TBND[t]) + normalized_regression(p_TBND[t], target_TBND[s])

        regression = mean_over_view_pairs(both_ways, len(z_TBND))
        return self.charts.regularize(z_TBND, LossOutput({"regression": regression}))

    def after_step(self, progress: float) -> None:
        self.target.follow(self.encoder, self.charts.heads, cosine_momentum(self.momentum, progress))


class BYOLCPlus(BYOL):
    """BYOL with several heads and their capacity as a regularizer."""

    settings_type = BYOLCPlusSettings
