"""SimCLR-UA: SimCLR under the unbalanced atlas (arXiv 2305.10267, as arXiv 2405.13848 section 5.2 compares with it).

    L = NT-Xent(m, m') - tau/2 (U(q) + U(q'))

    m, m'   mean over charts of the outputs on the two views
    q, q'   chart memberships
    U(q)    E sum_i (q_i - 1/n)^2: the membership is pushed away from uniformity

Averaged over pairs of more than two views, the second term is tau times the mean of U over the views.

Charts and membership are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from manicap.algorithms.base import Batch, LossOutput, MethodContext, Settings, detached
from manicap.algorithms.image_base import view_features
from manicap.algorithms.simclr import SimCLRSettings
from manicap.algorithms.two_view import TwoViewMethod, mean_over_view_pairs
from manicap.core.ranges import HeadCount, NonNegative, Width
from manicap.losses.atlas import unbalance
from manicap.losses.contrastive import nt_xent
from manicap.nn.heads import Membership


@dataclass(frozen=True)
class SimCLRUASettings(SimCLRSettings):
    num_heads: HeadCount = 8
    """Number of charts in the atlas."""
    units: Width = 256
    """Width of each chart."""
    unbalance_weight: NonNegative = 0.1
    """tau of arXiv 2405.13848, Table 3."""


class SimCLRUA(TwoViewMethod):
    """SimCLR on the mean of several charts, with a membership that is pushed away from uniformity."""

    settings_type: ClassVar[type[Settings]] = SimCLRUASettings

    def __init__(self, settings: SimCLRUASettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.membership = Membership(self.encoder.num_features, settings.num_heads)

    def loss(self, batch: Batch) -> LossOutput:
        settings, features_TBF = self.settings, view_features(self.encoder, batch.frames_BTCHW)
        z_TBND, q_TBN = ([part(features_BF) for features_BF in features_TBF] for part in (self.charts, self.membership))
        m_TBND = [z_BND.mean(1, keepdim=True) for z_BND in z_TBND]
        contrast = mean_over_view_pairs(lambda s, t: nt_xent(m_TBND[s], m_TBND[t], settings.temperature), len(m_TBND))
        unbalanced = torch.stack([unbalance(q_BN) for q_BN in q_TBN]).mean()
        parts = {"contrast": contrast, "unbalance": settings.unbalance_weight * unbalanced}
        metrics = detached({"membership_max": q_TBN[0].max(1).values.mean()})
        return self.charts.regularize(z_TBND, LossOutput(parts, metrics))
