"""Two views and C+: the part that every two-view method shares (arXiv 2405.13848, Algorithm 3).

    L = mean over head pairs (i, j) of L_base(o[:, i], o'[:, j]) - epsilon ||C||_*

    o, o'   outputs of N heads on the two views
    C       mean over heads of the L2-normalised outputs on the first view, one row per sample

A method computes the base loss over all pairs and hands it to `Charts.regularize`. One head is the plain method.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor, nn

from manicap.algorithms.base import CapacityOn, LossOutput, PresetName
from manicap.algorithms.image_base import ImageSettings
from manicap.algorithms.regularization import RegularizedSettings, regularized
from manicap.core.ranges import HeadCount, NonNegative, Width
from manicap.losses.regularizer import Regularizer
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class TwoViewSettings(ImageSettings, RegularizedSettings):
    own_regularizer: ClassVar[str] = "capacity"
    layer_widths: ClassVar[tuple[str, ...]] = ("units", "hidden_units")
    """Settings that the preset `quick` divides by four."""

    num_heads: HeadCount = 1
    """Number of heads (charts); the base loss is averaged over all pairs. 1 is the plain method, without capacity."""
    units: Width = 2048
    """Width of each head's output."""
    hidden_units: Width = 2048
    """Width of each head's hidden layer."""
    epsilon: NonNegative = 0.0
    """Weight of the regularizer's term; 0 disables it."""
    capacity_on: CapacityOn = "first"
    """Apply the regularizer to the first view only (first), or average it over both views (both)."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """paper: Table 5. standard: ResNet-18. quick: ResNet-18 at a quarter of the width, max pooling after its stem.

        The heads of `quick` are a quarter as wide, but never narrower than 256 units: in Barlow Twins, a unit's
        correlations with the D - 1 others weigh 0.005 (D - 1) relative to its own, 1.3 at 256 units and 0.3 at 64.
        """
        paper = cls()
        if name == "paper":
            return paper
        if name == "standard":
            return replace(paper, encoder="resnet18")
        narrow = {width: max(1, getattr(paper, width) // 4) for width in cls.layer_widths}
        narrow["units"] = max(narrow["units"], min(paper.units, 256))
        return replace(paper, encoder="resnet18", stem="stl10", encoder_width=16, **narrow)

    def build_regularizer(self) -> Regularizer | None:
        # With one head, the paper's Figure 3 is the plain method: there is nothing to keep apart.
        is_plain = self.regularizer is None and self.num_heads == 1
        is_weightless = self.epsilon == 0 and self.target_ratio is None
        return None if is_plain or is_weightless else super().build_regularizer()

    def problems(self) -> list[str]:
        found = ImageSettings.problems(self) + RegularizedSettings.problems(self)
        if self.num_heads > self.units > 0:
            found.append(f"num_heads must not exceed units ({self.units}), got {self.num_heads}: give wider heads")
        return found


@dataclass(frozen=True)
class CapacityDefaults(TwoViewSettings):
    """The defaults of the C+ variants (arXiv 2405.13848, Table 5 and section 4)."""

    num_heads: HeadCount = 8
    """Number of heads (charts); the base loss is averaged over all pairs. 1 is the plain method, without capacity."""
    units: Width = 256
    """Width of each head's output."""
    epsilon: NonNegative = 5e-3
    """Weight of the regularizer's term; 0 disables it."""


class Charts(nn.Module):
    """The heads of a two-view method, and the regularizer of their outputs."""

    def __init__(self, num_features: int, settings: TwoViewSettings) -> None:
        super().__init__()
        self.heads = Heads(num_features, settings.num_heads, settings.units, settings.hidden_units, batch_norm=True)
        self.regularizer = settings.build_regularizer()
        self.capacity_on = settings.capacity_on

    def forward(self, features_BF: Tensor) -> Tensor:
        """`[B, F]` -> `[B, N, D]`."""
        heads_BND: Tensor = self.heads(features_BF)
        return heads_BND

    @property
    def needs_other_view(self) -> bool:
        """Whether `regularize` uses the second view's heads."""
        return self.regularizer is not None and self.capacity_on == "both"

    def regularize(self, heads_BND: Tensor, other_BND: Tensor | None, loss: LossOutput) -> LossOutput:
        """The loss plus the regularizer's term, if any, of the heads on the first view or on both."""
        return regularized(loss, self.regularizer, heads_BND, other_BND if self.needs_other_view else None)
