"""Two views and C+: the part that every two-view method shares (arXiv 2405.13848, Algorithm 3).

    L = mean over head pairs (i, j) of L_base(o[:, i], o'[:, j]) - epsilon ||C||_*

    o, o'   outputs of N heads on the two views
    C       mean over heads of the L2-normalised outputs on the first view, one row per sample

With more than two views of each image, L_base is averaged over all pairs of views. A method computes it and hands it to
`Charts.regularize`. One head is the plain method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor, nn

from manicap.algorithms.base import CapacityOn, LossOutput, Method, MethodContext, PresetName, SampleKind
from manicap.algorithms.image_base import QUICK_NETWORK, ImageSettings, view_features
from manicap.algorithms.regularization import RegularizedSettings, regularized
from manicap.core.ranges import HeadCount, NonNegative, Range, Width
from manicap.losses.regularizer import Regularizer
from manicap.nn.heads import Heads


@dataclass(frozen=True)
class TwoViewSettings(ImageSettings, RegularizedSettings):
    own_regularizer: ClassVar[str] = "capacity"
    layer_widths: ClassVar[tuple[str, ...]] = ("units", "hidden_units")
    """Settings that the preset `quick` divides by four."""

    num_views: Annotated[int, Range(2, 64)] = 2
    """Views per image; the base loss is averaged over all pairs of views."""
    num_heads: HeadCount = 1
    """Number of heads (charts); the base loss is averaged over all pairs. 1 is the plain method, without capacity."""
    units: Width = 2048
    """Width of each head's output."""
    hidden_units: Width = 2048
    """Width of each head's hidden layer."""
    epsilon: NonNegative = 0.0
    """Weight of the regularizer's term; 0 disables it."""
    capacity_on: CapacityOn = "first"
    """Apply the regularizer to the first view only (first), or average it over all views (both)."""

    @classmethod
    def preset(cls, name: PresetName) -> Self:
        """paper: Table 5. standard: ResNet-18. quick: the plain network, which learns most in minutes (docs/images.md).

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
        return replace(paper, **QUICK_NETWORK, **narrow)

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
    def needs_all_views(self) -> bool:
        """Whether `regularize` uses the heads of more views than the first."""
        return self.regularizer is not None and self.capacity_on == "both"

    def regularize(self, heads_TBND: Sequence[Tensor], loss: LossOutput) -> LossOutput:
        """The loss plus the regularizer's term, if any, of the heads on the first view or its mean over all views."""
        return regularized(loss, self.regularizer, heads_TBND[0], heads_TBND[1:] if self.needs_all_views else None)


class TwoViewMethod(Method):
    """Base of the methods on pairs of views."""

    kind: ClassVar[SampleKind] = "views"

    def __init__(self, settings: TwoViewSettings, context: MethodContext) -> None:
        super().__init__(settings, context)
        self.frames_per_sample = settings.num_views
        self.charts = Charts(self.encoder.num_features, settings)

    def heads_of_views(self, frames_BTCHW: Tensor) -> list[Tensor]:
        """Outputs of the heads `[B, N, D]` on each view."""
        return [self.charts(features_BF) for features_BF in view_features(self.encoder, frames_BTCHW)]


def mean_over_view_pairs(loss: Callable[[int, int], Tensor], num_views: int) -> Tensor:
    """The mean of `loss(s, t)`, of views number s and t, over all pairs s < t.

    A loss that is not symmetric in the two views covers both orders itself.
    """
    return torch.stack([loss(s, t) for s, t in combinations(range(num_views), 2)]).mean()
