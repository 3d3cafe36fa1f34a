"""SimCLR-UA: SimCLR under the unbalanced atlas (arXiv 2305.10267, as arXiv 2405.13848 section 5.2 compares with it).

    L = NT-Xent(m, m') - tau/2 (U(q) + U(q'))

    m, m'   mean over charts of the outputs on the two views
    q, q'   chart memberships
    U(q)    E sum_i (q_i - 1/n)^2: the membership is pushed away from uniformity

Charts and membership are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass
from typing import ClassVar

from manicap.algorithms.base import Batch, LossOutput, Method, MethodContext, SampleKind, Settings, detached
from manicap.algorithms.image_base import view_features
from manicap.algorithms.simclr import SimCLRSettings
from manicap.algorithms.two_view import Charts
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


class SimCLRUA(Method):
    """SimCLR on the mean of several charts, with a membership that is pushed away from uniformity."""

    kind: ClassVar[SampleKind] = "views"
    settings_type: ClassVar[type[Settings]] = SimCLRUASettings

    def __init__(self, settings: SimCLRUASettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.settings = settings
        self.charts = Charts(self.encoder.num_features, settings)
        self.membership = Membership(self.encoder.num_features, settings.num_heads)

    def loss(self, batch: Batch) -> LossOutput:
        features_BF, features_other_BF = view_features(self.encoder, batch.frames_BTCHW)
        z_BND, z_other_BND = self.charts(features_BF), self.charts(features_other_BF)
        q_BN, q_other_BN = self.membership(features_BF), self.membership(features_other_BF)
        mean_BND, mean_other_BND = (z.mean(1, keepdim=True) for z in (z_BND, z_other_BND))
        parts = {
            "contrast": nt_xent(mean_BND, mean_other_BND, self.settings.temperature),
            "unbalance": self.settings.unbalance_weight / 2 * (unbalance(q_BN) + unbalance(q_other_BN)),
        }
        metrics = detached({"membership_max": q_BN.max(1).values.mean()})
        return self.charts.regularize(z_BND, z_other_BND, LossOutput(parts, metrics))
