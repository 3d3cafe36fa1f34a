import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test, trim_mean

from manicap.evaluate.statistics import bootstrap_interval, interquartile_mean, mean, paired_test


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30))
def test_interquartile_mean_equals_scipys_trimmed_mean(values):
    # rliable's IQM is scipy.stats.trim_mean(scores, 0.25).
    assert interquartile_mean(np.array(values)) == pytest.approx(trim_mean(values, 0.25), abs=1e-12)


def test_bootstrap_of_a_mean_has_the_textbook_width():
    # 400 scores of deviation 1: the mean's 95% interval is +- 1.96 / 20; a game that never varies adds nothing.
    scores = np.random.default_rng(0).standard_normal(400)
    scores = (scores - scores.mean()) / scores.std()
    alone = bootstrap_interval([scores], mean, np.random.default_rng(1), 4000)
    assert alone.low == pytest.approx(-1.96 / 20, abs=0.006)
    assert alone.high == pytest.approx(1.96 / 20, abs=0.006)
    beside = bootstrap_interval([scores, np.full(400, 5.0)], mean, np.random.default_rng(1), 4000)
    # Unstratified draws would also move with the number of scores from each game: +- 1.96 x 2.6 / sqrt(800) = 0.18.
    assert beside.high - beside.low == pytest.approx((alone.high - alone.low) / 2, rel=0.05)


def test_intervals_are_seeded_and_single_runs_are_points():
    scores = [np.array([0.1, 0.5, 0.9])]
    first, second = (bootstrap_interval(scores, interquartile_mean, np.random.default_rng(4)) for _ in range(2))
    assert first == second
    point = bootstrap_interval([np.array([0.3])], mean, np.random.default_rng(0))
    assert (point.low, point.high) == (0.3, 0.3)
    with pytest.raises(ValueError, match="at least one score a game"):
        bootstrap_interval([np.array([])], mean, np.random.default_rng(0))


def test_paired_test_by_hand():
    # Differences 1, 1, 1: of 8 sign choices only +++ and --- are as far from 0: p = 2/8.
    test = paired_test(np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0]), np.random.default_rng(0))
    assert (test.difference, test.p_value, test.num_pairs) == (1.0, 0.25, 3)


def test_paired_test_equals_scipy():
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal(9), generator.standard_normal(9)
    theirs = permutation_test((a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf)
    assert paired_test(a, b, generator).p_value == pytest.approx(theirs.pvalue, abs=1e-12)


def test_many_pairs_are_sampled_close_to_the_exact_value():
    generator = np.random.default_rng(3)
    a, b = generator.standard_normal(40) + 0.4, generator.standard_normal(40)
    sampled = paired_test(a, b, np.random.default_rng(0)).p_value
    theirs = permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(1)
    )
    assert sampled == pytest.approx(theirs.pvalue, abs=0.02)
