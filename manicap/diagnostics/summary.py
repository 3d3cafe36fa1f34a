"""The measures of one representation, by the names under which they are logged, tabulated and judged by the alarm."""

from typing import Any

from numpy.typing import NDArray

from manicap.diagnostics.centroids import centroid_norm
from manicap.diagnostics.geometry import alignment, spread, uniformity
from manicap.diagnostics.heads import head_cka, head_cosine, mean_of_pairs
from manicap.diagnostics.information import cosine_infonce_bound
from manicap.diagnostics.membership import chart_usage, membership_entropy, usage_entropy
from manicap.diagnostics.spectrum import decay_exponent, effective_rank, participation_ratio
from manicap.diagnostics.units import dead_fraction

Measures = dict[str, float]


def measure_features(features: NDArray[Any]) -> Measures:
    """Measures of features [n, D]."""
    return {
        "effective_rank": effective_rank(features),
        "effective_rank_centered": effective_rank(features, centered=True),
        "participation_ratio": participation_ratio(features),
        "decay_exponent": decay_exponent(features),
        "uniformity": uniformity(features),
        "spread": spread(features),
        "dead_fraction": dead_fraction(features),
    }


def measure_pairs(first: NDArray[Any], second: NDArray[Any], batch_size: int = 64) -> Measures:
    """Measures of two views of the same samples, [n, D] each, ordered so that neighbours are unrelated."""
    bound = cosine_infonce_bound(first, second, batch_size)
    return {
        "alignment": alignment(first, second),
        "information_bound": bound.bound,
        "information_ceiling": bound.ceiling,
    }


def measure_heads(heads: NDArray[Any]) -> Measures:
    """Measures of the outputs [n, N, D] of several heads."""
    norm = centroid_norm(heads)
    measures = {
        "centroid_norm": norm.norm,
        "centroid_bound": norm.bound,
        "centroid_percent_error": norm.percent_error,
    }
    if heads.shape[1] > 1:
        measures["head_cka"] = mean_of_pairs(head_cka(heads))
        measures["head_cosine"] = mean_of_pairs(head_cosine(heads))
    return measures


def measure_membership(membership: NDArray[Any]) -> Measures:
    """Measures of the membership [n, N] of charts."""
    return {
        "membership_entropy": membership_entropy(membership),
        "usage_entropy": usage_entropy(membership),
        "largest_chart": float(chart_usage(membership).max()),
    }
