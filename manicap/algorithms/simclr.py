"""SimCLR (arXiv 2002.05709) and SimCLR-C+ (arXiv 2405.13848, Algorithm 3).

    L = mean over head pairs (i, j) of NT-Xent(o[:, i], o'[:, j]) [ - epsilon ||C||_* ]

The heads are discarded after training: the probe sees the pooled features.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

from manicap.algorithms.base import Batch, LossOutput, MethodContext, PresetName, Settings
from manicap.algorithms.two_view import CapacityDefaults, TwoViewMethod, TwoViewSettings, mean_over_view_pairs
from manicap.core.ranges import Range
from manicap.losses.contrastive import MIN_TEMPERATURE, nt_xent


@dataclass(frozen=True)
class SimCLRSettings(TwoViewSettings):
    temperature: Annotated[float, Range(MIN_TEMPERATURE, 1e6)] = 0.5
    """Divides the similarities: tau of the paper's Table 5."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """quick: a lower temperature, which learns faster (docs/images.md)."""
        found = super().preset(name)
        return replace(found, temperature=0.2) if name == "quick" else found


@dataclass(frozen=True)
class SimCLRCPlusSettings(CapacityDefaults, SimCLRSettings):
    """SimCLR's settings with the defaults of C+."""


class SimCLR(TwoViewMethod):
    """Each view identifies the other view of its image among all views in the batch."""

    settings_type: ClassVar[type[Settings]] = SimCLRSettings

    def __init__(self, settings: SimCLRSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.temperature = settings.temperature

    def loss(self, batch: Batch) -> LossOutput:
        z_TBND = self.heads_of_views(batch.frames_BTCHW)
        contrast = mean_over_view_pairs(lambda s, t: nt_xent(z_TBND[s], z_TBND[t], self.temperature), len(z_TBND))
        return self.charts.regularize(z_TBND, LossOutput({"contrast": contrast}))


class SimCLRCPlus(SimCLR):
    """SimCLR with several heads and their capacity as a regularizer."""

    settings_type = SimCLRCPlusSettings
