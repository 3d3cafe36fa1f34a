"""Whether the heads differ: the similarity of every pair; 1 means that they have converged."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import Floats, as_samples, unit_rows


def linear_cka(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Linear centred kernel alignment of two representations of the same samples (arXiv 1905.00414).

        CKA = |Y^T X|_F^2 / (|X^T X|_F |Y^T Y|_F)        columns centred

    1 if one is a rotation and scaling of the other, 0 if they have no linear relation. Rotations do not change it, so
    it tells whether two heads carry the same structure, not whether their units agree. NaN if either is constant.
    """
    x, y = as_samples(first, "first"), as_samples(second, "second")
    if len(x) != len(y):
        raise ValueError(f"linear_cka needs the same samples in both, got {len(x)} and {len(y)}")
    return float(_alignment(_centred_gram(x), _centred_gram(y)))


def head_cka(heads: NDArray[Any]) -> Floats:
    """Linear CKA of every pair of heads: [N, N] from heads [n, N, D]."""
    x = as_samples(heads, "heads", ndim=3)
    grams = [_centred_gram(x[:, i]) for i in range(x.shape[1])]
    return np.array([[_alignment(a, b) for b in grams] for a in grams])


def head_cosine(heads: NDArray[Any]) -> Floats:
    """Mean over samples of the cosine between two heads' outputs: [N, N] from heads [n, N, D].

        cos_ij = E o_i . o_j / (|o_i| |o_j|)

    It tells whether heads give the same vector, as bootstrapped heads tend to (arXiv 2405.13848, section 3.5).
    """
    unit = unit_rows(as_samples(heads, "heads", ndim=3))
    cosines: Floats = np.einsum("pid,pjd->ij", unit, unit, optimize=True) / len(unit)
    return cosines


def mean_of_pairs(similarity: NDArray[Any]) -> float:
    """Mean over all pairs of different heads; NaN for a single head."""
    pairs = np.asarray(similarity)[np.triu_indices(len(similarity), 1)]
    return float(pairs.mean()) if len(pairs) else float("nan")


def _centred_gram(x: Floats) -> Floats:
    centred = x - x.mean(0)
    return centred @ centred.T


def _alignment(a: Floats, b: Floats) -> float:
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    # |Y^T X|_F^2 = tr(X X^T Y Y^T), which needs no D x D matrix.
    return float((a * b).sum() / scale) if scale > 0 else float("nan")
