"""Means over runs with honest intervals. Scores are [runs, games]: a row per seed, a column per game. Draws are seeded.

Runs of a game are exchangeable, runs of different games are not, so the bootstrap draws runs within each game
(stratified), as rliable does (arXiv 2108.13264).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Any]
"""Maps scores [..., n] to one number per entry of the leading axes."""

MAX_EXACT_PAIRS = 16
"""Up to this many pairs, all 2^n sign flips are tried."""


def mean(scores: Floats) -> Any:
    """Mean over the last axis."""
    return np.mean(scores, -1)


def interquartile_mean(scores: Floats) -> Any:
    """Mean of the middle half of the last axis: a quarter (rounded down) is cut at each end, as in rliable."""
    ordered = np.sort(scores, -1)
    cut = int(0.25 * ordered.shape[-1])
    return ordered[..., cut : ordered.shape[-1] - cut].mean(-1)


def deviation(scores: Floats) -> float | None:
    """Standard deviation over runs (n - 1 in the denominator); None for a single run."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else None


@dataclass(frozen=True)
class Interval:
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def bootstrap_interval(
    scores_by_game: Sequence[Floats],
    statistic: Statistic,
    generator: np.random.Generator,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of a statistic of all scores, drawing runs with replacement within each game.

    With one run per game there is nothing to draw from, and the interval is a point.
    """
    return _percentiles(statistic(stratified_draws(scores_by_game, generator, num_resamples)), level)


def stratified_draws(scores_by_game: Sequence[Floats], generator: np.random.Generator, num_resamples: int) -> Floats:
    """[num_resamples, n]: as many runs of each game as it has, drawn with replacement."""
    if not scores_by_game or not all(len(scores) for scores in scores_by_game):
        raise ValueError("a stratified bootstrap needs at least one score per game")
    return np.concatenate(
        [scores[generator.integers(len(scores), size=(num_resamples, len(scores)))] for scores in scores_by_game], 1
    )


@dataclass(frozen=True)
class Estimate:
    value: float
    interval: Interval


def probability_of_improvement(
    a_by_game: Sequence[Floats],
    b_by_game: Sequence[Floats],
    generator: np.random.Generator,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """How likely a run of `a` beats one of `b` on a game drawn at random (arXiv 2108.13264, section 4.3).

    P(A > B) = mean over games of  mean over pairs of runs of  [a_i > b_j] + [a_i = b_j] / 2
    """
    if len(a_by_game) != len(b_by_game) or not a_by_game:
        raise ValueError(f"probability_of_improvement needs the same games, got {len(a_by_game)} and {len(b_by_game)}")
    values, draws = [], []
    for a, b in zip(a_by_game, b_by_game, strict=True):
        wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
        values.append(wins.mean())
        rows = generator.integers(len(a), size=(num_resamples, len(a), 1))
        columns = generator.integers(len(b), size=(num_resamples, 1, len(b)))
        draws.append(wins[rows, columns].mean((1, 2)))
    return Estimate(float(np.mean(values)), _percentiles(np.mean(draws, 0), level))


@dataclass(frozen=True)
class Profile:
    """Fraction of runs that score above each threshold, with a band of pointwise intervals."""

    thresholds: Floats
    shares: Floats
    low: Floats
    high: Floats


def performance_profile(
    scores_by_game: Sequence[Floats],
    thresholds: Floats,
    generator: np.random.Generator,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Profile:
    """The score distribution of arXiv 2108.13264, section 4.2: how many runs over all games exceed a threshold."""
    draws = stratified_draws(scores_by_game, generator, num_resamples)
    resampled = np.stack([(draws > threshold).mean(1) for threshold in thresholds], 1)
    tail = (1 - level) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    shares = (np.concatenate(scores_by_game)[:, None] > thresholds).mean(0)
    return Profile(thresholds, shares, low, high)


def _percentiles(values: Floats, level: float) -> Interval:
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class PairedTest:
    difference: float
    """Mean of a - b over the pairs."""
    p_value: float | None
    """Two-sided; at least 2 / 2^n for n pairs: five pairs cannot go below 0.0625. None for a single pair, which carries
    no information: its p would be 1 whatever the difference."""
    num_pairs: int


def paired_test(a: Floats, b: Floats, generator: np.random.Generator, num_resamples: int = 20_000) -> PairedTest:
    """Sign-flip permutation test of paired scores: if the methods were equal, each difference could have either sign.

        p = fraction of sign choices s with |mean(s_i d_i)| >= |mean(d_i)|

    Exact up to 16 pairs; with more, it uses `num_resamples` random sign choices, including the observed one.
    """
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"paired_test needs as many scores of a as of b, at least one; got {a.shape} and {b.shape}")
    differences = a - b
    if len(differences) <= MAX_EXACT_PAIRS:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(differences))))
    else:
        signs = generator.choice([1.0, -1.0], size=(num_resamples, len(differences)))
        signs[0] = 1
    if len(differences) == 1:
        return PairedTest(float(differences[0]), None, 1)
    observed = abs(differences.mean())
    # Rounding must not make the observed choice itself, or its mirror image, smaller.
    extreme = np.abs(signs @ differences) / len(differences) >= observed - 1e-12
    return PairedTest(float(differences.mean()), float(extreme.mean()), len(differences))
