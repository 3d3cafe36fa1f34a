import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test, trim_mean

from manicap.statistics.estimates import (
    Interval,
    bootstrap_interval,
    deviation,
    interquartile_mean,
    mean,
    paired_test,
    performance_profile,
    probability_of_improvement,
)


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


@pytest.mark.parametrize("differences", [(0.01, 0.5, 0.9), (-0.01, 0.5, 0.9)])
def test_of_three_differences_the_interval_ends_at_the_extremes(differences):
    # All three draws are the smallest with probability 1/27, more than a fortieth. So docs/grids.md: zero is excluded
    # whenever all have one sign.
    found = bootstrap_interval([np.array(differences)], mean, np.random.default_rng(0))
    assert (found.low, found.high) == pytest.approx((min(differences), max(differences)), abs=1e-12)
    assert found.excludes_zero == (min(differences) > 0)


def test_intervals_are_seeded_and_single_runs_are_points():
    scores = [np.array([0.1, 0.5, 0.9])]
    first, second = (bootstrap_interval(scores, interquartile_mean, np.random.default_rng(4)) for _ in range(2))
    assert first == second
    point = bootstrap_interval([np.array([0.3])], mean, np.random.default_rng(0))
    assert (point.low, point.high) == (0.3, 0.3)
    with pytest.raises(ValueError, match="at least one score per game"):
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


def test_statistics_of_many_draws_are_those_of_each():
    draws = np.random.default_rng(0).random((7, 10))
    assert interquartile_mean(draws).tolist() == [interquartile_mean(draw) for draw in draws]
    assert mean(draws).tolist() == [mean(draw) for draw in draws]


def test_deviation_is_the_samples_and_unknown_for_one_run():
    # 1, 2, 3: squares of the deviations 1 + 0 + 1, over n - 1 = 2.
    assert deviation(np.array([1.0, 2.0, 3.0])) == 1.0
    assert deviation(np.array([1.0])) is None


def test_an_interval_excludes_zero_only_on_one_side_of_it():
    assert Interval(0.1, 0.2).excludes_zero
    assert Interval(-0.2, -0.1).excludes_zero
    assert not Interval(-0.1, 0.2).excludes_zero
    assert not Interval(0.0, 0.2).excludes_zero


def test_probability_of_improvement_by_hand():
    # Game 1: of 4 pairs (1, 3) x (2, 3): 1<2, 1<3, 3>2, 3=3 give 1.5 of 4. Game 2: all 2 pairs won.
    a, b = [np.array([1.0, 3.0]), np.array([5.0])], [np.array([2.0, 3.0]), np.array([1.0, 2.0])]
    found = probability_of_improvement(a, b, np.random.default_rng(0))
    assert found.value == pytest.approx((1.5 / 4 + 1) / 2, abs=1e-12)
    # Game 1 resampled spans 0 (1, 1 against 2 or more) to 0.75 and beyond; game 2 never varies.
    assert 0.5 <= found.interval.low < found.value < found.interval.high <= 1
    reverse = probability_of_improvement(b, a, np.random.default_rng(0))
    assert reverse.value == pytest.approx(1 - found.value, abs=1e-12)


def test_probability_of_improvement_needs_the_same_games():
    with pytest.raises(ValueError, match="the same games, got 1 and 2"):
        probability_of_improvement([np.ones(2)], [np.ones(2)] * 2, np.random.default_rng(0))


def test_performance_profile_by_hand():
    scores = [np.array([0.1, 0.5]), np.array([0.5, 0.9])]
    found = performance_profile(scores, np.array([0.0, 0.1, 0.5, 0.9]), np.random.default_rng(0))
    assert found.shares.tolist() == [1.0, 0.75, 0.25, 0.0]  # strictly above
    assert np.all(found.low <= found.shares)
    assert np.all(found.shares <= found.high)
    # Above 0.5 is only the 0.9 of the second game: 0, 1 or 2 of its two draws, of four runs.
    assert (found.low[2], found.high[2]) == (0.0, 0.5)


def test_estimates_and_intervals_are_rliables():
    library = pytest.importorskip("rliable.library", reason="rliable is not installed")
    metrics = pytest.importorskip("rliable.metrics")
    generator = np.random.default_rng(0)
    a, b = generator.random((5, 7)), generator.random((5, 7)) + 0.1
    columns_a, columns_b = list(a.T), list(b.T)
    try:
        library.get_interval_estimates({"a": a}, lambda x: np.array([np.mean(x)]), reps=2)
    except TypeError:
        pytest.skip("rliable does not work with the installed arch (1.2.0 does with arch 5.5)")
    for ours, theirs in ((mean, np.mean), (interquartile_mean, metrics.aggregate_iqm)):
        points, intervals = library.get_interval_estimates(
            {"a": a}, lambda x, theirs=theirs: np.array([theirs(x)]), reps=4000
        )
        assert ours(np.concatenate(columns_a)) == pytest.approx(points["a"][0], abs=1e-12)
        found = bootstrap_interval(columns_a, ours, np.random.default_rng(1), 4000)
        # Both are 4,000 random draws: the percentiles agree to about a hundredth of the scores' range.
        assert [found.low, found.high] == pytest.approx(intervals["a"][:, 0], abs=0.015)
    points, intervals = library.get_interval_estimates(
        {"ab": (a, b)}, lambda x, y: np.array([metrics.probability_of_improvement(x, y)]), reps=2000
    )
    found = probability_of_improvement(columns_a, columns_b, np.random.default_rng(2))
    assert found.value == pytest.approx(points["ab"][0], abs=1e-12)
    assert [found.interval.low, found.interval.high] == pytest.approx(intervals["ab"][:, 0], abs=0.03)
    thresholds = np.linspace(0, 1, 21)
    profiles, bands = library.create_performance_profile({"a": a}, thresholds, reps=2000)
    found = performance_profile(columns_a, thresholds, np.random.default_rng(3))
    assert found.shares == pytest.approx(profiles["a"], abs=1e-12)
    assert np.stack([found.low, found.high]) == pytest.approx(bands["a"], abs=0.04)
