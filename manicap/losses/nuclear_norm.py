"""The nuclear norm of a matrix, differentiable, by three routes with one result."""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from manicap.losses.polar import polar_factor

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
    - `polar`: polynomials that end at the polar factor (`losses.polar`), matrix multiplications only, no host
      synchronisation.
    - `auto`: `gram` on a CPU, where it is measured to be fastest, else `polar` (chosen because it consists only of
      multiplications; not measured on a GPU).

    Half precision is computed in float32. A rank-deficient matrix has many subgradients. `svd` and `gram` return the
    smallest: a singular value below eps of the largest counts as zero, in the value and in the gradient. (In float64,
    `svd` resolves values down to min(B, D) * eps, and `gram`, which squares them, down to sqrt(min(B, D) * eps).) The
    zero matrix has value and gradient zero. `polar` returns the same value and a different subgradient: rounding noise
    in the missing directions is amplified with the rest, so that they also enter the gradient, with arbitrary sign and
    length up to 1. `polar` assumes full-precision multiplication, torch's default; with TF32 enabled
    (`torch.set_float32_matmul_precision`), it takes more multiplications, and expect three digits.
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
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
    polar = polar_factor(wide)
    norm = (polar * wide).sum()
    return norm, (polar if wide is matrix else polar.mT) if with_polar else None


_ROUTES: dict[str, _Route] = {"svd": _svd_route, "gram": _gram_route, "polar": _polar_route}


def _require_finite(matrix: Tensor) -> None:
    if not torch.isfinite(matrix).all():
        raise ValueError("nuclear_norm needs finite entries, got NaN or infinity; did training diverge?")
