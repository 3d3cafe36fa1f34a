"""Manifold capacity as a regularizer: the negative nuclear norm of the centroid matrix (arXiv 2405.13848, Eq 4).

`CapacityRegularizer` works in any training loop:

    capacity = CapacityRegularizer(epsilon=5e-4)
    penalty, parts = capacity(heads_BND)
    (base_loss + penalty).backward()
"""

import math
from typing import ClassVar

import torch
from torch import Tensor

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import gather_rows, world_size
from manicap.losses.nuclear_norm import NuclearNormMethod, nuclear_norm
from manicap.losses.regularizer import Regularizer


def centroids(heads_BND: Tensor) -> Tensor:
    """Mean over heads of the L2-normalised head outputs: the centroid matrix, `[B, D]`.

    A zero vector stays zero and receives no gradient (dividing by a small constant would give it a huge one).
    """
    if heads_BND.ndim != 3 or heads_BND.numel() == 0:
        raise ValueError(f"centroids needs heads_BND of shape [B, N, D], got {list(heads_BND.shape)}")
    length_BN = torch.linalg.vector_norm(heads_BND, dim=2)
    nonzero_BN = length_BN > 0
    inverse_BN = nonzero_BN / torch.where(nonzero_BN, length_BN, 1)
    # One product normalises and averages; the normalised heads are never stored.
    return torch.einsum("bn,bnd->bd", inverse_BN, heads_BND) / heads_BND.shape[1]


class CapacityRegularizer(Regularizer):
    """-weight * ||C||_*, C the centroid matrix of the heads (arXiv 2405.13848, Eq 4 and section 3.5).

    Pass either `epsilon`, a fixed weight, or `target_ratio`, the size of the term relative to the base loss (the
    paper's suggestion under Limitations); `Regularizer` explains both.

    Deviations: none for Algorithms 1 and 2. Algorithm 3 shows no normalisation, perhaps because the network in the
    code it builds on (arXiv 2104.13712) returns normalised outputs; here it is always applied.
    """

    term: ClassVar[str] = "capacity"

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        method: NuclearNormMethod = "auto",
    ) -> None:
        super().__init__(epsilon, target_ratio=target_ratio, smoothing=smoothing)
        self.method = method

    def penalty(self, heads_BND: Tensor) -> Tensor:
        return -nuclear_norm(gather_rows(centroids(heads_BND)), self.method)

    def describe(self, penalty: Tensor, heads_BND: Tensor) -> dict[str, Tensor | float]:
        """`norm`; its upper `bound` sqrt(B min(B, D)), with B counted over all processes; `percent`, the norm as a
        percentage of the bound; `pretraining_percentage_error`, what it lacks of the bound, as arXiv 2406.09366 calls
        it."""
        B, D = len(heads_BND) * world_size(), heads_BND.shape[2]
        norm, bound = -penalty, math.sqrt(B * min(B, D))
        error = 100 * (bound - norm) / bound
        return {"norm": norm, "bound": bound, "percent": 100 * norm / bound, "pretraining_percentage_error": error}
