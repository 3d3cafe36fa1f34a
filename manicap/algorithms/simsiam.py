"""SimSiam (arXiv 2011.10566), with C+ after arXiv 2405.13848, Algorithm 3.

    L = mean over head pairs (i, j) of ( D(p[:, i], o'[:, j]) + D(p'[:, i], o[:, j]) ) / 2 [ - epsilon ||C||_* ]
    D(p, o) = -mean_b cos(p, o), with no gradient to o

    p, p'   predictions made from the heads' outputs o, o' on the two views

Heads and predictors are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
from manicap.core.ranges import Width
from manicap.losses.regression import negative_cosine
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class SimSiamSettings(TwoViewSettings):
    layer_widths: ClassVar[tuple[str, ...]] = ("units", "hidden_units", "predictor_units")

    predictor_units: Width = 512
    """Width of the hidden layer of each head's predictor: a quarter of the units, as in arXiv 2011.10566."""


@dataclass(frozen=True)
class SimSiamCPlusSettings(CapacityDefaults, SimSiamSettings):
    predictor_units: Width = 64
    """Width of the hidden layer of each head's predictor: a quarter of the units, as in arXiv 2011.10566."""


class SimSiam(TwoViewMethod):
    """Each view predicts the other, which receives no gradient."""

    settings_type: ClassVar[type[Settings]] = SimSiamSettings

    def __init__(self, settings: SimSiamSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.predictors = Heads(
            settings.units, settings.num_heads, settings.units, settings.predictor_units, batch_norm=True
        )

    def loss(self, batch: Batch) -> LossOutput:
        z_TBND = self.heads_of_views(batch.frames_BTCHW)
        p_TBND = [self.predictors(z_BND) for z_BND in z_TBND]

        def both_ways(s: int, t: int) -> Tensor:
            return (negative_cosine(p_TBND[s], z_TBND[t]) + negative_cosine(p_TBND[t], z_TBND[s])) / 2

        similarity = mean_over_view_pairs(both_ways, len(z_TBND))
        return self.charts.regularize(z_TBND, LossOutput({"similarity": similarity}))


class SimSiamCPlus(SimSiam):
    """SimSiam with several heads and their capacity as a regularizer."""

    settings_type = SimSiamCPlusSettings
