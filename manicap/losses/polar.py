"""The polar factor U V^T of a matrix U S V^T, by multiplications alone, with the fewest of them.

An odd polynomial of X changes its singular values and keeps its singular vectors, so a chain of polynomials that moves
all singular values to 1 ends at the polar factor.

    x -> a x + b x^3 + c x^5              X -> (a I + b G + c G^2) X,   G = X X^T

Each step uses the polynomial nearest to 1 on the interval that holds the singular values at that point (Polar Express,
arXiv 2505.16932). Between restarts, only the Gram matrix and the product of the polynomials are updated, B x B each:

    P = a I + b G + c G^2        Q -> P Q        G -> P G P        X -> Q X at the restart

A Gram matrix holds squares: rounding turns g into g + eps, and steps with slope a at 0 multiply that by a^2. A restart,
which computes G from X again, is due before the noise has grown to a thousandth.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

_MARGIN = 1.01
"""Intervals end this much above the largest value possible: beyond its interval a polynomial grows fast."""
_CUSHION = 0.1
"""Intervals begin at least at this fraction of their end. The best polynomial from smaller values on is steeper at 0,
but it also maps values near the end to values as small, which lose as many digits."""
_LARGEST_NOISE = 1.2e-3
"""Of a Gram matrix before a restart."""


class Quintic(NamedTuple):
    """a x + b x^3 + c x^5."""

    a: float
    b: float
    c: float

    def __call__(self, x: float) -> float:
        return x * (self.a + x**2 * (self.b + x**2 * self.c))


def polar_factor(wide: Tensor) -> Tensor:
    """U V^T of a matrix with at least as many columns as rows; singular values below eps of its Frobenius norm become
    anything from 0 to 1, the zero matrix stays zero."""
    scale = torch.linalg.matrix_norm(wide)
    # The Frobenius norm bounds the largest singular value.
    x = wide / torch.where(scale > 0, scale, 1)
    for stage in polar_stages(torch.finfo(wide.dtype).eps, product_rounding(wide.dtype)):
        x = _apply(stage, x)
    return x


def product_rounding(dtype: torch.dtype) -> float:
    """Precision of the products of matrices. If torch is allowed to, it multiplies float32 in TF32 or bfloat16."""
    if dtype != torch.float32:
        return torch.finfo(dtype).eps
    return {"highest": 2.0**-23, "high": 2.0**-10, "medium": 2.0**-7}[torch.get_float32_matmul_precision()]


def _apply(stage: tuple[Quintic, ...], x: Tensor) -> Tensor:
    """One stage: the product of its polynomials in the Gram matrix of X, times X."""
    gram = x @ x.mT
    product = step = _polynomial(stage[0], gram)
    for quintic in stage[1:]:
        gram = step @ gram @ step
        step = _polynomial(quintic, gram)
        product = step @ product
    return product @ x


def _polynomial(quintic: Quintic, gram: Tensor) -> Tensor:
    """a I + b G + c G^2."""
    found = torch.addmm(gram, gram, gram, beta=quintic.b, alpha=quintic.c)
    found.diagonal().add_(quintic.a)
    return found


@cache
def polar_stages(eps: float, rounding: float) -> tuple[tuple[Quintic, ...], ...]:
    """The polynomials for a precision, from singular values of eps of the norm on, divided by restarts.

    `rounding` is the relative error of a Gram matrix.

    The two last steps, which no longer amplify anything, are a stage of their own: they remove what noise is left.
    """
    steps = quintics(smallest=eps, precision=eps)
    stages: list[list[Quintic]] = [[]]
    slope = 1.0
    for step in steps[:-2]:
        if stages[-1] and rounding * (slope * step.a) ** 2 > _LARGEST_NOISE:
            stages.append([])
            slope = 1.0
        stages[-1].append(step)
        slope *= step.a
    return (*map(tuple, stages), tuple(steps[-2:]))


def quintics(smallest: float, precision: float) -> list[Quintic]:
    """Polynomials whose composition maps [smallest, 1] to within `precision` of 1.

    Optimal on [l, u], a polynomial maps it to [1 - E, 1 + E], the interval of the next one; values below the cushion
    are multiplied by nearly its slope.
    """
    low, high, found = smallest, 1.0, []
    while max(1 - low, high - 1) > precision:
        margin = _MARGIN if low < 0.5 else 1.0
        step, error = best_quintic(max(low, _CUSHION * high * margin), high * margin)
        found.append(step)
        low, high = min(step(low), 1 - error), 1 + error
    return found


def best_quintic(low: float, high: float) -> tuple[Quintic, float]:
    """The odd polynomial of degree 5 nearest to 1 on [low, high], and its largest error, by the Remez algorithm.

    The error of the best one has equal size and alternating sign at four points: the ends and two extrema between
    them. Given four points, its coefficients and error solve a linear system; given the polynomial, the roots of its
    derivative are the next points.
    """
    spread = (high - low) / (high + low)
    if spread < 1e-3:  # the system is singular in the limit, which is Newton and Schulz's polynomial
        centre = (high + low) / 2
        return Quintic(15 / (8 * centre), -10 / (8 * centre**3), 3 / (8 * centre**5)), 2.5 * spread**3
    inner = [low + (high - low) / 4, low + (high - low) * 3 / 4]
    previous = math.inf
    for _ in range(100):
        x = np.array([low, *inner, high])
        a, b, c, error = np.linalg.solve(np.stack([x, x**3, x**5, [1, -1, 1, -1]], axis=1), np.ones(4)).tolist()
        if abs(error - previous) <= 1e-15:
            break
        previous = error
        root = math.sqrt(9 * b**2 - 20 * a * c)
        inner = [math.sqrt((-3 * b - root) / (10 * c)), math.sqrt((-3 * b + root) / (10 * c))]
    return Quintic(a, b, c), error
