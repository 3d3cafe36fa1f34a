"""Uniformity on the sphere: the Gaussian potential of all pairs of samples (Wang and Isola, arXiv 2005.10242)."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import gather_rows, world_size
from manicap.losses.pairs import in_float32, require_heads
from manicap.losses.regularizer import Regularizer


def uniformity(z_BND: Tensor, scale: float = 2.0) -> Tensor:
    """Log of the mean Gaussian potential of pairs of samples (arXiv 2005.10242, section 4.1), mean over heads.

        u = mean over i of log E exp(-scale |f_bi - f_ci|^2)        f of unit length, over samples b != c

    0 if all samples are equal; -2 scale if they are orthogonal; never lower than -4 scale. Pairs are over the samples
    of all processes. A zero vector stays zero, at distance 1 from unit vectors, and receives no gradient.
    Deviations: none.
    """
    require_heads("uniformity", z_BND)
    B = len(z_BND) * world_size()
    if B < 2:
        raise ValueError(f"uniformity needs at least 2 samples, got {B}")
    with torch.autocast(z_BND.device.type, enabled=False):
        z_BND = gather_rows(in_float32(z_BND))
        length_BN1 = torch.linalg.vector_norm(z_BND, dim=2, keepdim=True)
        nonzero_BN1 = length_BN1 > 0
        unit_NBD = (z_BND * (nonzero_BN1 / torch.where(nonzero_BN1, length_BN1, 1))).transpose(0, 1)
        # |f - f'|^2 = |f|^2 + |f'|^2 - 2 f . f', and |f| is 0 or 1
        squared_NB1 = nonzero_BN1.transpose(0, 1).to(unit_NBD)
        potential_NBB = scale * (2 * unit_NBD @ unit_NBD.mT - (squared_NB1 + squared_NB1.mT))
        itself = torch.eye(B, dtype=torch.bool, device=z_BND.device)
        potential_NBB = potential_NBB.masked_fill(itself, -math.inf)
        return (potential_NBB.logsumexp((1, 2)) - math.log(B * (B - 1))).mean()


class UniformityRegularizer(Regularizer):
    """weight * uniformity(heads): pushes the samples of each head apart on the sphere (arXiv 2005.10242).

    Deviations: the paper applies it to one output, beside an alignment term; here every head has its own, and what
    aligns is the base loss.
    """

    term: ClassVar[str] = "uniformity"

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        scale: Positive = 2.0,
    ) -> None:
        super().__init__(epsilon, target_ratio=target_ratio, smoothing=smoothing)
        self.scale = scale

    def penalty(self, heads_BND: Tensor) -> Tensor:
        return uniformity(heads_BND, self.scale)
