"""Variance, invariance, covariance: the terms of VICReg (arXiv 2105.04906), for one head or over all pairs of heads.

    L = 25 invariance(z, z') + 25 (variance_hinge(z) + variance_hinge(z')) / 2 + covariance_penalty(z) + (z')

Averaged over pairs of heads (arXiv 2405.13848, Algorithm 3), the last two are means over heads.
"""

from typing import ClassVar

import torch
from torch import Tensor

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import gather_rows, world_size
from manicap.losses.pairs import in_float32, product_squares, require_heads, require_two_views
from manicap.losses.regularizer import Regularizer


def invariance(z_BND: Tensor, z_other_BND: Tensor) -> Tensor:
    """Mean squared distance between the views (arXiv 2105.04906, Eq 5), over all pairs of heads.

        s = mean over b, i, j, d of (z_bi - z'_bj)^2
          = mean over b, d of  var_i z_bi + var_j z'_bj + (mean_i z_bi - mean_j z'_bj)^2

    The second line needs no pairs and, unlike the expanded square, does not suffer from cancellation.

    Deviations: the mean over units, as in VICReg's code, where Eq 5 writes the sum.
    """
    require_two_views("invariance", z_BND, z_other_BND)
    with torch.autocast(z_BND.device.type, enabled=False):
        (spread_BD, mean_BD), (spread_other_BD, mean_other_BD) = (
            torch.var_mean(in_float32(z), dim=1, correction=0) for z in (z_BND, z_other_BND)
        )
        return (spread_BD + spread_other_BD + (mean_BD - mean_other_BD).square()).mean()


def variance_hinge(z_BND: Tensor, threshold: float = 1.0, variance_epsilon: float = 1e-4) -> Tensor:
    """How far units fall short of a standard deviation (arXiv 2105.04906, Eqs 1-2), mean over heads.

        v = mean over i, d of max(0, threshold - sqrt(var_b z_bid + eps))

    The variance divides by B - 1, over the samples of all processes. Deviations: none.
    """
    _require_samples("variance_hinge", z_BND)
    with torch.autocast(z_BND.device.type, enabled=False):
        variance_ND = gather_rows(in_float32(z_BND)).var(0, correction=1)
        return (threshold - (variance_ND + variance_epsilon).sqrt()).relu().mean()


def covariance_penalty(z_BND: Tensor) -> Tensor:
    """Squared off-diagonal covariance (arXiv 2105.04906, Eqs 3-4), mean over heads.

        Cov_i = (Z_i - mean Z_i)^T (Z_i - mean Z_i) / (B - 1)
        c     = mean over i of sum over d != e of Cov_i[d, e]^2, over D

    Covariances are over the samples of all processes. Deviations: none.
    """
    _require_samples("covariance_penalty", z_BND)
    with torch.autocast(z_BND.device.type, enabled=False):
        z_BND = gather_rows(in_float32(z_BND))
        B, N, D = z_BND.shape
        centred_NBD = (z_BND - z_BND.mean(0)).transpose(0, 1)
        variances_ND = centred_NBD.square().sum(1)
        off_diagonal = product_squares(centred_NBD, centred_NBD) - variances_ND.square().sum()
        return off_diagonal / ((B - 1) ** 2 * N * D)


def _require_samples(loss: str, z_BND: Tensor) -> None:
    require_heads(loss, z_BND)
    if len(z_BND) * world_size() < 2:
        raise ValueError(f"{loss} needs at least 2 samples, got {len(z_BND)}")


class VICRegularizer(Regularizer):
    """weight * (25 variance_hinge(heads) + covariance_penalty(heads)): units vary and are uncorrelated.

    The two terms of VICReg (arXiv 2105.04906) that prevent collapse, in the proportion of its Eq 6. Of several stacks
    it is the mean. Deviations: from VICReg's code, and L above, which average the variances of two views but add their
    covariances: relative to the variance, the covariance counts half as much here (`covariance_weight=2` undoes it).
    """

    term: ClassVar[str] = "vicreg"

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        variance_weight: NonNegative = 25.0,
        covariance_weight: NonNegative = 1.0,
    ) -> None:
        super().__init__(epsilon, target_ratio=target_ratio, smoothing=smoothing)
        self.variance_weight, self.covariance_weight = variance_weight, covariance_weight

    def penalty(self, heads_BND: Tensor) -> Tensor:
        variance, covariance = variance_hinge(heads_BND), covariance_penalty(heads_BND)
        return self.variance_weight * variance + self.covariance_weight * covariance
