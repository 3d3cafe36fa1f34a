"""How an atlas uses its charts: which are chosen, and how certain the membership is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.samples import Floats, as_samples


def chart_usage(membership: NDArray[Any]) -> Floats:
    """Share of samples whose highest membership is chart i, as at inference (arXiv 2405.13848, section 3.2): [N]."""
    q = _probabilities(membership)
    return np.bincount(q.argmax(1), minlength=q.shape[1]) / len(q)


def membership_entropy(membership: NDArray[Any]) -> float:
    """Mean entropy of a sample's membership in nats: 0 if certain of one chart, log N if uniform.

    H(I|z) = -E sum_i q_i(z) log q_i(z)
    """
    return float(_entropy(_probabilities(membership)).mean())


def usage_entropy(membership: NDArray[Any]) -> float:
    """Entropy of the mean membership in nats: 0 if all samples are in one chart, log N if charts are used equally.

        H(I) = -sum_i E[q_i] log E[q_i]

    H(I) - H(I|z) is the information that the chart holds about the sample.
    """
    return float(_entropy(_probabilities(membership).mean(0)))


def _entropy(p: Floats) -> Floats:
    entropy: Floats = -(p * np.log(np.where(p > 0, p, 1))).sum(-1)
    return entropy


def _probabilities(membership: NDArray[Any]) -> Floats:
    q = as_samples(membership, "membership", at_least=1)
    if (q < 0).any() or not np.allclose(q.sum(1), 1, atol=1e-4):
        raise ValueError("membership must hold probabilities: not negative, with rows that sum to 1")
    return q
