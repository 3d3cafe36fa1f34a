"""Means over runs with honest intervals. Scores are [runs, games]: seeds down, games across. Every draw is seeded.

Runs of a game are exchangeable, runs of different games are not: the bootstrap draws runs within each game
(stratified), as rliable does (arXiv 2108.13264).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]

MAX_EXACT_PAIRS = 16
"""Up to here all 2^n sign flips are tried."""


def mean(scores: Floats) -> float:
    return float(np.mean(scores))


def interquartile_mean(scores: Floats) -> float:
    """Mean of the middle half: a quarter of the scores (rounded down) is cut at either end, as in rliable."""
    ordered = np.sort(np.ravel(scores))
    cut = int(0.25 * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def bootstrap_interval(
    scores_by_game: Sequence[Floats],
    statistic: Statistic,
    generator: np.random.Generator,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of a statistic of all scores, drawing runs with replacement within each game.

    With one run a game there is nothing to draw from and the interval is a point.
    """
    if not scores_by_game or not all(len(scores) for scores in scores_by_game):
        raise ValueError("bootstrap_interval needs at least one score a game")
    resampled = np.concatenate(
        [scores[generator.integers(len(scores), size=(num_resamples, len(scores)))] for scores in scores_by_game], 1
    )
    values = np.array([statistic(draw) for draw in resampled])
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class PairedTest:
    difference: float
    """Mean of a - b over the pairs."""
    p_value: float
    """Two-sided; never under 2 / 2^n for n pairs: five pairs cannot go below 0.0625."""
    num_pairs: int


def paired_test(a: Floats, b: Floats, generator: np.random.Generator, num_resamples: int = 20_000) -> PairedTest:
    """Sign-flip permutation test of paired scores: were both methods alike, each difference could have either sign.

        p = share of sign choices s with |mean(s_i d_i)| >= |mean(d_i)|

    Exact up to 16 pairs; with more, `num_resamples` random sign choices, the observed one counted in.
    """
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"paired_test needs equally many scores of both, at least one; got {a.shape} and {b.shape}")
    differences = a - b
    if len(differences) <= MAX_EXACT_PAIRS:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(differences))))
    else:
        signs = generator.choice([1.0, -1.0], size=(num_resamples, len(differences)))
        signs[0] = 1
    observed = abs(differences.mean())
    # Rounding must not turn the observed choice itself, or its mirror image, into a smaller one.
    extreme = np.abs(signs @ differences) / len(differences) >= observed - 1e-12
    return PairedTest(float(differences.mean()), float(extreme.mean()), len(differences))
