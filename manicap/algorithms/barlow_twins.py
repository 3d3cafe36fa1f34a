"""Barlow Twins (arXiv 2103.03230) and Barlow Twins-C+ (arXiv 2405.13848, Algorithm 3).

    L = mean over head pairs (i, j) of BT(o[:, i], o'[:, j]) [ - epsilon ||C||_* ]
    BT = sum_d (1 - R[d, d])^2 + lambda sum_{d != e} R[d, e]^2,   R the cross-correlation of the two over the batch

The heads are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
from manicap.core.ranges import NonNegative, Range
from manicap.losses.redundancy import barlow_twins


@dataclass(frozen=True)
class BarlowTwinsSettings(TwoViewSettings):
    off_diagonal_weight: NonNegative = 0.005
    """lambda of the paper's Table 5."""
    variance_correction: Annotated[int, Range(0, 1)] = 1
    """Variances divide by B minus this: 1 as in the code of arXiv 2104.13712, 0 as in that of Barlow Twins."""
    variance_epsilon: NonNegative = 1e-5
    """Added to these variances: 1e-5 as in the code of Barlow Twins, 0 as in that of arXiv 2104.13712."""
    normalize_outputs: bool = True
    """Scale each head's output to a common length before standardising units, as the code of arXiv 2104.13712 does."""


@dataclass(frozen=True)
class BarlowTwinsCPlusSettings(CapacityDefaults, BarlowTwinsSettings):
    """Barlow Twins' settings with the defaults of C+."""


class BarlowTwins(TwoViewMethod):
    """Each unit agrees with itself across views, and with no other unit."""

    settings_type: ClassVar[type[Settings]] = BarlowTwinsSettings

    def __init__(self, settings: BarlowTwinsSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings

    def loss(self, batch: Batch) -> LossOutput:
        z_TBND = self.heads_of_views(batch.frames_BTCHW)
        redundancy = mean_over_view_pairs(lambda s, t: self.redundancy(z_TBND[s], z_TBND[t]), len(z_TBND))
        return self.charts.regularize(z_TBND, LossOutput({"redundancy": redundancy}))

    def redundancy(self, z_BND: Tensor, z_other_BND: Tensor) -> Tensor:
        return barlow_twins(
            z_BND,
            z_other_BND,
            self.settings.off_diagonal_weight,
            self.settings.variance_correction,
            self.settings.variance_epsilon,
            self.settings.normalize_outputs,
        )


class BarlowTwinsCPlus(BarlowTwins):
    """Barlow Twins with several heads and their capacity as a regularizer."""

    settings_type = BarlowTwinsCPlusSettings
