"""BYOL (arXiv 2006.07733), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of R(p[:, i], t'[:, j]) + R(p'[:, i], t[:, j]) [ - epsilon ||C||_* ]
    R(p, t) = mean_b | p / |p| - t / |t| |^2

    p, p'   predictions made from the heads' outputs on the two views
    t, t'   outputs of the momentum target, a slow copy of encoder and heads

Heads, predictors and target are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, SampleKind, Settings
from manicap.algorithms.image_base import view_features
from manicap.algorithms.momentum import MomentumTarget, cosine_momentum
from manicap.algorithms.two_view import CapacityDefaults, Charts, TwoViewSettings
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


class BYOL(Method):
    """Each view predicts the output of a slow copy of the network on the other view."""

    kind: ClassVar[SampleKind] = "views"
    settings_type: ClassVar[type[Settings]] = BYOLSettings

    def __init__(self, settings: BYOLSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.momentum = settings.momentum
        self.charts = Charts(self.encoder.num_features, settings)
        self.predictors = Heads(
            settings.units, settings.num_heads, settings.units, settings.predictor_units, batch_norm=True
        )
        self.target = MomentumTarget(self.encoder, self.charts.heads)

    def loss(self, batch: Batch) -> LossOutput:
        z_BND, z_other_BND = map(self.charts, view_features(self.encoder, batch.frames_BTCHW))
        target_BND, target_other_BND = map(self.target, batch.frames_BTCHW.unbind(1))
        regression = normalized_regression(self.predictors(z_BND), target_other_BND)
        regression = regression + normalized_regression(self.predictors(z_other_BND), target_BND)
        return self.charts.regularize(z_BND, z_other_BND, LossOutput({"regression": regression}))

    def after_step(self, progress: float) -> None:
        self.target.follow(self.encoder, self.charts.heads, cosine_momentum(self.momentum, progress))


class BYOLCPlus(BYOL):
    """BYOL with several heads and their capacity as a regularizer."""

    settings_type = BYOLCPlusSettings
