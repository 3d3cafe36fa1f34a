"""Manifold capacity as a regularizer: the negative nuclear norm of the centroid matrix (arXiv 2405.13848, Eq 4).

`CapacityRegularizer` works in any training loop:

    capacity = CapacityRegularizer(epsilon=5e-4)
    penalty, parts = capacity(heads_BND)
    (base_loss + penalty).backward()
"""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from manicap.core.config import checked
from manicap.core.ranges import Fraction, NonNegative, Positive
from manicap.losses.gather import gather_rows, mean_over_processes
from manicap.losses.pairs import in_float32

NuclearNormMethod = Literal["auto", "svd", "gram", "polar"]

# Up to this many rows or columns the Gram matrix is float64 from the start: 2 ms at 64 x 4096 on two threads, where
# svdvals and its gradient take 8 to 12 ms. Above this size float32 is tried first: 35 ms at 512 x 2048, compared with
# 60 in float64 and 155 to 205 with svdvals. A badly conditioned matrix pays for both, 80 to 90 ms.
_FLOAT64_GRAM_SIZE = 256
# A float32 Gram matrix resolves singular values to about eps * s_max^2 / s. With s_min > 0.03 s_max that is 4e-6 of
# s_max; worse conditioned matrices are recomputed in float64.
_FLOAT32_EIGENVALUE_RATIO = 1e-3


def nuclear_norm(matrix: Tensor, method: NuclearNormMethod = "auto") -> Tensor:
    """Sum of the singular values of a matrix; its gradient is the polar factor U V^T.

    - `svd`: the reference, in float64.
    - `gram`: eigenvalues of the smaller Gram matrix, in float64 unless the matrix is large and well conditioned.
    - `polar`: Newton-Schulz iteration for the polar factor, matrix multiplications only, no host synchronisation.
    - `auto`: `gram` on a CPU, where it is measured to be fastest, else `polar` (chosen because it consists only of
      multiplications; not measured on a GPU).

    Half precision is computed in float32. A rank-deficient matrix has many subgradients. `svd` and `gram` return the
    smallest: a singular value below eps of the largest counts as zero, in the value and in the gradient. (In float64,
    `svd` resolves values down to min(B, D) * eps, and `gram`, which squares them, down to sqrt(min(B, D) * eps).) The
    zero matrix has value and gradient zero. `polar` returns the same value and a different subgradient: rounding noise
    in the missing directions is amplified with the rest, so that they also enter the gradient, with arbitrary sign and
    length up to 1. `polar` takes 13 + 4 iterations in float32, 30 + 5 in float64, and assumes full-precision
    multiplication (torch's default; expect three digits with TF32 enabled).
    """
    if method not in get_args(NuclearNormMethod):
        raise ValueError(f"unknown nuclear norm method {method!r} (one of {', '.join(get_args(NuclearNormMethod))})")
    if matrix.ndim != 2 or matrix.numel() == 0 or not matrix.is_floating_point():
        raise ValueError(
            f"nuclear_norm needs a non-empty real matrix with 2 axes, got {list(matrix.shape)} {matrix.dtype}"
        )
    if method == "auto":
        method = "gram" if matrix.device.type == "cpu" else "polar"
    with torch.autocast(matrix.device.type, enabled=False):
        if matrix.element_size() < 4:
            matrix = matrix.float()
        norm: Tensor = _NuclearNorm.apply(matrix, _ROUTES[method])
        return norm


# A route maps a matrix to its nuclear norm and, when asked, its polar factor (the gradient).
_Route = Callable[[Tensor, bool], tuple[Tensor, Tensor | None]]


class _NuclearNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, route: _Route) -> Tensor:
        norm, polar = route(matrix, ctx.needs_input_grad[0])
        ctx.save_for_backward(polar)
        return norm

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (polar,) = ctx.saved_tensors
        return grads[0] * polar, None


def _svd_route(matrix: Tensor, with_polar: bool) -> tuple[Tensor, Tensor | None]:
    _require_finite(matrix)
    U, s, Vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    keep = s > s[0] * max(torch.finfo(matrix.dtype).eps, len(s) * torch.finfo(s.dtype).eps)
    polar = ((U * keep) @ Vh).to(matrix.dtype) if with_polar else None
    return torch.where(keep, s, 0).sum().to(matrix.dtype), polar


def _gram_route(matrix: Tensor, with_polar: bool) -> tuple[Tensor, Tensor | None]:
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    wide = wide.double() if len(wide) <= _FLOAT64_GRAM_SIZE else wide
    eigenvalues, vectors = _gram_eigh(wide)
    if wide.dtype == torch.float32 and eigenvalues[0] < _FLOAT32_EIGENVALUE_RATIO * eigenvalues[-1]:
        wide = wide.double()
        eigenvalues, vectors = _gram_eigh(wide)
    s = eigenvalues.clamp_min(0).sqrt()
    # Two floors: what the input's precision can distinguish from zero, and what a Gram matrix (of squares) can.
    # A matrix that stayed in float32 has passed a stricter test.
    floor = max(torch.finfo(matrix.dtype).eps, math.sqrt(len(s) * torch.finfo(torch.float64).eps))
    keep = s > floor * s[-1]
    norm = torch.where(keep, s, 0).sum().to(matrix.dtype)
    if not with_polar:
        return norm, None
    # (A A^T)^(-1/2) A = U V^T over the kept part.
    polar = ((vectors * torch.where(keep, 1 / s, 0)) @ vectors.mT @ wide).to(matrix.dtype)
    return norm, polar if matrix.shape[0] <= matrix.shape[1] else polar.mT


def _gram_eigh(wide: Tensor) -> tuple[Tensor, Tensor]:
    gram = wide @ wide.mT
    _require_finite(gram)
    eigenvalues, vectors = torch.linalg.eigh(gram)
    return eigenvalues, vectors


def _polar_route(matrix: Tensor, with_polar: bool) -> tuple[Tensor, Tensor | None]:
    """Odd polynomials of X move every singular value to 1 and leave the singular vectors unchanged.

    The first polynomial has slope 3.44 at 0: it maps (0, 1.21] into itself and multiplies small values by 3.44, so
    that after 13 steps every singular value of at least 1e-7 of the Frobenius norm (30 steps: 1e-16) lies in
    [0.68, 1.21]. Then follows the order-3 Newton-Schulz polynomial, x - 1 -> 2.5 (x - 1)^3: the largest error over
    that interval falls through 6e-2, 6e-4, 5e-10, 2e-16, below eps of float32 at the third step and of float64 at the
    fourth; one extra step is a margin.
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    lift, polish = (30, 5) if matrix.dtype == torch.float64 else (13, 4)
    scale = torch.linalg.matrix_norm(wide)
    # The Frobenius norm bounds the largest singular value; the zero matrix stays zero.
    x = wide / torch.where(scale > 0, scale, 1)
    for a, b, c in [(3.4445, -4.7750, 2.0315)] * lift + [(1.875, -1.25, 0.375)] * polish:
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    norm = (x * wide).sum()
    return norm, (x if wide is matrix else x.mT) if with_polar else None


_ROUTES: dict[str, _Route] = {"svd": _svd_route, "gram": _gram_route, "polar": _polar_route}


def _require_finite(matrix: Tensor) -> None:
    if not torch.isfinite(matrix).all():
        raise ValueError("nuclear_norm needs finite entries, got NaN or infinity; did training diverge?")


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


class CapacityRegularizer(nn.Module):
    """-weight * ||C||_*, C the centroid matrix of the heads (arXiv 2405.13848, Eq 4 and section 3.5).

    Pass either `epsilon`, a fixed weight, or `target_ratio`: the weight is then `target_ratio` times an exponential
    average of |base loss| / ||C||_*, so that the term is about that fraction of the base loss (the paper's suggestion
    under Limitations). The average is a buffer, is updated only in training mode, and is the same on every process.

    Deviations: none for Algorithms 1 and 2. Algorithm 3 shows no normalisation, perhaps because the network in the
    code it builds on (arXiv 2104.13712) returns normalised outputs; here it is always applied.
    """

    average: Tensor

    @checked
    def __init__(
        self,
        epsilon: NonNegative | None = None,
        *,
        target_ratio: Positive | None = None,
        smoothing: Fraction = 0.99,
        method: NuclearNormMethod = "auto",
    ) -> None:
        super().__init__()
        if (epsilon is None) == (target_ratio is None):
            raise ValueError(f"give exactly one of epsilon and target_ratio, got {epsilon} and {target_ratio}")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1), got {smoothing}")
        self.epsilon, self.target_ratio, self.smoothing, self.method = epsilon, target_ratio, smoothing, method
        # Average of |base loss| / norm; negative until the first training step sets it.
        self.register_buffer("average", torch.tensor(-1.0))

    def forward(
        self, heads_BND: Tensor, base_loss: Tensor | None = None, other_BND: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor | float]]:
        """Heads `[B, N, D]` (or views `[B, V, D]`) -> the term to add to the loss, and what to log.

        The paper uses the heads of one frame or view. If `other_BND` holds those of the other, the norm is the mean of
        the two frames' norms, so the term keeps its scale.

        The parts are `norm`; its upper `bound` sqrt(B min(B, D)), with B counted over all processes; `percent`, the
        norm as a percentage of the bound; `pretraining_percentage_error`, what it lacks of the bound, as arXiv
        2406.09366 calls it; `weight`; and, if the base loss is given, `ratio`, the term's size relative
        to it.
        """
        if base_loss is None and self.target_ratio is not None:
            raise ValueError("CapacityRegularizer with a target_ratio needs base_loss in every call")
        if other_BND is not None and other_BND.shape != heads_BND.shape:
            raise ValueError(
                "CapacityRegularizer needs heads_BND and other_BND of one shape, "
                f"got {list(heads_BND.shape)} and {list(other_BND.shape)}"
            )
        with torch.autocast(heads_BND.device.type, enabled=False):
            stacks = [in_float32(heads) for heads in (heads_BND, other_BND) if heads is not None]
            matrices = [gather_rows(centroids(heads)) for heads in stacks]
            norm = torch.stack([nuclear_norm(centroids_BD, self.method) for centroids_BD in matrices]).mean()
        B, D = matrices[0].shape
        bound = math.sqrt(B * min(B, D))
        size = None if base_loss is None else mean_over_processes(base_loss).abs()
        weight = self._weight(norm.detach(), size)
        parts: dict[str, Tensor | float] = {
            "norm": norm.detach(),
            "bound": bound,
            "percent": 100 * norm.detach() / bound,
            "pretraining_percentage_error": 100 * (bound - norm.detach()) / bound,
            "weight": weight,
        }
        if size is not None:
            parts["ratio"] = weight * norm.detach() / size
        return -weight * norm, parts

    def _weight(self, norm: Tensor, base_size: Tensor | None) -> Tensor | float:
        if self.target_ratio is None or base_size is None:
            assert self.epsilon is not None
            return self.epsilon
        quotient = (base_size / norm).to(self.average)
        moved = self.smoothing * self.average + (1 - self.smoothing) * quotient
        moved = torch.where(self.average < 0, quotient, moved)
        # All-zero heads have norm 0: an infinite quotient must not stay in the average.
        average = torch.where(torch.isfinite(quotient), moved, self.average)
        if self.training:
            self.average.copy_(average)
        elif self.average >= 0:
            average = self.average
        return (self.target_ratio * average.clamp_min(0)).to(norm.dtype)
