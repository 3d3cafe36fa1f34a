"""Redundancy reduction: the loss of Barlow Twins, for one head or over all pairs of heads."""

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import gather_rows
from manicap.losses.pairs import in_float32, product_squares, require_two_views
from manicap.losses.regularizer import Regularizer


def barlow_twins(
    z_BND: Tensor,
    z_other_BND: Tensor,
    off_diagonal_weight: float = 0.005,
    variance_correction: int = 1,
    variance_epsilon: float = 1e-5,
    normalize: bool = False,
) -> Tensor:
    """Barlow Twins (arXiv 2103.03230, Eqs 1-2), averaged over all pairs of heads (arXiv 2405.13848, Algorithm 3).

        L     = mean over i, j of sum_d (1 - C_ij[d, d])^2 + lambda sum_{d != e} C_ij[d, e]^2
        C_ij  = s(z_i)^T s(z'_j) / B
        s(x)  = (x - mean_b x) / sqrt(var_b x + eps)

    With `normalize`, each head's output is first scaled to length sqrt(D), x_b -> sqrt(D) x_b / |x_b|, as in the code
    of arXiv 2104.13712, whose setting arXiv 2405.13848 follows. That code uses length 1. The only difference to s(x) is
    through eps, which at length 1 would be added to variances of 1 / D: at 2048 units, 1e-5 is 2 % of 5e-4 if a unit
    has mean 0, and more otherwise.

    Means and variances are over the samples of all processes. With one head this is plain Barlow Twins.

    Conventions that affect the scale of the loss, and thereby the relative weight of epsilon in C+: terms are summed
    over units, not averaged; the variance divides by B - `variance_correction` while C divides by B, as in the code of
    arXiv 2104.13712, so that a perfect C has (B - 1) / B on its diagonal (0, as in the code of Barlow Twins, gives 1);
    that code adds no eps, and a constant unit is NaN there; the code of Barlow Twins adds 1e-5, to variances that it
    does not bound.

    The diagonals of all C_ij are N^2 D numbers. All other entries enter only through their squares, whose sum over all
    pairs is the sum of (Z Z^T) * (Z' Z'^T), with Z the standardised heads side by side, B x N D: no C is formed if B
    is smaller than N D.

    Deviations: the eps, from the code of arXiv 2104.13712. With `normalize`, variance_correction 1 and variance_epsilon
    0 there are none.
    """
    require_two_views("barlow_twins", z_BND, z_other_BND)
    with torch.autocast(z_BND.device.type, enabled=False):
        views = [in_float32(z) for z in ((z_BND,) if z_other_BND is z_BND else (z_BND, z_other_BND))]
        if normalize:
            views = [math.sqrt(z.shape[2]) * F.normalize(z, dim=2) for z in views]
        views = [standardize(gather_rows(z), variance_correction, variance_epsilon) for z in views]
        B, N, _ = views[0].shape
        diagonal_NND = torch.einsum("bid,bjd->ijd", views[0], views[-1]) / B
        flat = [z.flatten(1) for z in views]
        squares = product_squares(flat[0], flat[-1]) / B**2
        off_diagonal = squares - diagonal_NND.square().sum()
        return ((1 - diagonal_NND).square().sum() + off_diagonal_weight * off_diagonal) / N**2


def standardize(z_BND: Tensor, variance_correction: int, variance_epsilon: float) -> Tensor:
    """Shift and scale each unit of each head to mean 0 and variance 1 over the samples."""
    variance_ND, mean_ND = torch.var_mean(z_BND, dim=0, correction=variance_correction)
    return (z_BND - mean_ND) * (variance_ND + variance_epsilon).rsqrt()


class BarlowRegularizer(Regularizer):
    """weight * barlow_twins(heads, heads): heads agree unit by unit, and different units are uncorrelated.

    The loss of Barlow Twins (arXiv 2103.03230) between all pairs of heads of the same samples, a head and itself
    included: of one head, only the correlations between its units can change.

    Deviations: heads in the place of views.
    """

    term: ClassVar[str] = "barlow"

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        off_diagonal_weight: NonNegative = 0.005,
    ) -> None:
        super().__init__(epsilon, target_ratio=target_ratio, smoothing=smoothing)
        self.off_diagonal_weight = off_diagonal_weight

    def penalty(self, heads_BND: Tensor) -> Tensor:
        return barlow_twins(heads_BND, heads_BND, self.off_diagonal_weight)
