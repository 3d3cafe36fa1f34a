"""The InfoNCE bound on mutual information. It can never exceed log K, so compare it with that ceiling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import Floats, as_samples, require_pairs, unit_rows

TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class InformationBound:
    """In nats."""

    bound: float
    """log K - L, a lower bound on the mutual information in expectation."""
    ceiling: float
    """log K, the most that K candidates can show, however large the mutual information is."""


def infonce_bound(scores: NDArray[Any]) -> InformationBound:
    """log K - L for scores [batches, K, K] or [K, K], with positives on the diagonal (arXiv 1807.03748, section 2.3).

        L = -mean over b of log( exp(s_bb) / sum over b' of exp(s_bb') )
        I(x; y) >= log K - L        in expectation, for any score function

    The bound is tight for large K when the score is log p(y|x) / p(y). Deviations: none.
    """
    square = np.asarray(scores, np.float64)
    square = square[None] if square.ndim == 2 else square
    if square.ndim != 3 or square.shape[1] != square.shape[2] or square.shape[1] < 2:
        raise ValueError(f"infonce_bound needs scores [K, K] or [batches, K, K] with K >= 2, got {list(square.shape)}")
    top = square.max(2)
    log_sum = top + np.log(np.exp(square - top[..., None]).sum(2))
    loss = (log_sum - np.diagonal(square, axis1=1, axis2=2)).mean()
    ceiling = float(np.log(square.shape[1]))
    return InformationBound(float(ceiling - loss), ceiling)


def cosine_infonce_bound(first: NDArray[Any], second: NDArray[Any], batch_size: int = 64) -> InformationBound:
    """The bound for pairs, scored by cosine similarity over a temperature, for features without their own critic.

    The temperature is the best of `TEMPERATURES` on every other batch; the bound is measured on the rest, so the choice
    does not inflate it. Rows are used in the given order: shuffle them first.
    """
    a, b = as_samples(first, "first", at_least=2 * batch_size), as_samples(second, "second", at_least=2 * batch_size)
    require_pairs(a, b)
    count = len(a) // batch_size
    a, b = (unit_rows(x)[: count * batch_size].reshape(count, batch_size, -1) for x in (a, b))
    cosines: Floats = a @ b.swapaxes(1, 2)
    best = max(TEMPERATURES, key=lambda temperature: infonce_bound(cosines[::2] / temperature).bound)
    return infonce_bound(cosines[1::2] / best)
