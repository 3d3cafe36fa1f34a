from dataclasses import replace

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.statistics.comparison import Measured, compare

VALUES = {"a": {0: 0.5, 1: 0.6, 2: 0.7}, "b": {0: 0.4, 1: 0.45, 2: 0.5}}
PROBED = {
    "protocol": "fixed",
    "annotation set": "corrected",
    "probe": "linear",
    "probe options": {"batch_size": 64},
}


def result(method, game, seed, f1, **changes):
    scores = {"f1": f1, "accuracy": f1 / 2}
    return replace(Measured(game, method, seed, 256, scores, f"store of {game}", probed=PROBED), **changes)


@pytest.fixture
def results():
    return [result(method, "pong", seed, f1) for method, by_seed in VALUES.items() for seed, f1 in by_seed.items()]


def test_rows_by_hand(results):
    comparison = compare(results)
    best, other = comparison.rows
    assert (best.method, best.num_runs, best.num_games, best.versus, best.paired) == ("a", 3, 1, None, None)
    assert best.mean == pytest.approx(0.6)
    assert best.mean_interval.low >= 0.5
    assert best.mean_interval.high <= 0.7
    assert best.mean_interval.low < best.mean < best.mean_interval.high
    # Differences b - a: -0.1, -0.15, -0.2; all of one sign: p = 2/8.
    assert other.paired.difference == pytest.approx(-0.15)
    assert other.paired.p_value == 0.25
    assert compare(results) == comparison
    assert "-0.150 to a (p = 0.250, 3 pairs)" in str(comparison)
    assert compare(results, metric="accuracy").rows[0].mean == pytest.approx(0.3)
    assert compare(results, baseline="b").rows[0].paired.difference == pytest.approx(0.15)


def test_a_method_does_not_move_the_others_intervals(results):
    before = {row.method: row.iqm_interval for row in compare(results).rows}
    after = {row.method: row.iqm_interval for row in compare([*results, result("c", "pong", 0, 0.1)]).rows}
    assert before.items() <= after.items()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probed": PROBED | {"protocol": "reference"}}, r"differ in protocol: fixed \(a, b\), reference \(c\)"),
        ({"probed": PROBED | {"annotation set": "ari-2019"}}, "differ in annotation set"),
        ({"probed": PROBED | {"probe": "knn"}}, "differ in probe:"),
        ({"probed": PROBED | {"probe options": {"batch_size": 512}}}, "differ in probe options"),
        ({"width": 3456}, r"differ in probe width: 256 \(a, b\), 3456 \(c\)"),
        ({"store": "another"}, "on pong with seed 0 they were probed on different data"),
    ],
)
def test_what_differs_is_not_ranked_unless_asked(results, changes, message):
    results.append(result("c", "pong", 0, 0.9, **changes))
    with pytest.raises(UserError, match=message + r".*; compare them anyway with allow_mismatch \(--allow-mismatch\)$"):
        compare(results)
    comparison = compare(results, allow_mismatch=True)
    assert len(comparison.mismatches) == 1
    assert f"not comparable: {comparison.mismatches[0]}" in str(comparison)


def test_methods_on_different_games_are_not_ranked(results):
    with pytest.raises(UserError, match="differ in games: a has pong, b has pong, c has freeway, pong"):
        compare([*results, result("c", "pong", 0, 0.1), result("c", "freeway", 0, 0.1)])


def test_mistakes_are_named(results):
    with pytest.raises(UserError, match="a on pong with seed 0 is given twice"):
        compare([*results, replace(results[0])])
    with pytest.raises(UserError, match="no results"):
        compare([])
    with pytest.raises(UserError, match="unknown method 'dim'"):
        compare(results, baseline="dim")
    with pytest.raises(UserError, match="unknown metric 'top5' .*accuracy, f1"):
        compare(results, metric="top5")


def trained(method, game, seed, f1, **settings):
    """A result that carries its run's config."""
    config = {"game": game, "method": method, "seed": seed, "max_steps": 20, "settings": {"units": 256}}
    config |= {key: value for key, value in settings.items() if key != "units"}
    config["settings"] = {"units": settings.get("units", 256)}
    return result(method, game, seed, f1, config=config)


def test_trainings_that_differ_in_anything_but_the_seed_are_rows_of_their_own():
    results = [trained("a", "pong", seed, 0.5 + seed / 10, max_steps=20) for seed in (0, 1)]
    results += [trained("a", "pong", seed, 0.7 + seed / 10, max_steps=80) for seed in (0, 1)]
    results += [trained("b", "pong", seed, 0.1, units=8) for seed in (0, 1)]
    rows = {row.method: row for row in compare(results).rows}
    # 'b' was trained in one way: nothing has to be said of it.
    assert set(rows) == {"a (max steps 20)", "a (max steps 80)", "b"}
    assert rows["a (max steps 20)"].mean == pytest.approx(0.55)
    assert rows["a (max steps 80)"].mean == pytest.approx(0.75)
    assert rows["a (max steps 20)"].paired.difference == pytest.approx(-0.2)
    assert rows["a (max steps 20)"].paired.num_pairs == 2
    by_settings = compare([trained("a", "pong", 0, 0.5, units=8), trained("a", "pong", 0, 0.6, units=9)])
    assert [row.method for row in by_settings.rows] == ["a (units 9)", "a (units 8)"]


def test_one_training_over_games_and_seeds_is_one_row():
    results = [trained("a", game, seed, 0.5) for game in ("pong", "freeway") for seed in (0, 1)]
    (row,) = compare(results).rows
    assert (row.method, row.num_runs, row.num_games) == ("a", 4, 2)


def test_what_a_preset_chooses_by_the_dataset_does_not_split_a_method():
    def images(dataset, stem, recipe):
        config = {"dataset": dataset, "recipe": recipe, "settings": {"stem": stem}}
        return result("simclr", dataset, 0, 0.5, config=config)

    own = [images("cifar10", "cifar10", "cifar10-tsai2021"), images("stl10", "stl10", "stl10-tsai2021")]
    assert [row.method for row in compare(own).rows] == ["simclr"]
    assert len(compare([*own, images("cifar10", "cifar10", "simclr")], allow_mismatch=True).rows) == 2


def test_a_baseline_is_a_row_or_the_only_row_of_a_method():
    results = [trained("a", "pong", 0, 0.5, max_steps=20), trained("a", "pong", 0, 0.6, max_steps=80)]
    results.append(trained("b", "pong", 0, 0.1))
    assert compare(results, baseline="b").rows[-1].versus is None
    assert compare(results, baseline="a (max steps 20)").rows[0].versus == "a (max steps 20)"
    with pytest.raises(UserError, match=r"unknown method 'a'.* .*a \(max steps 20\), a \(max steps 80\), b"):
        compare(results, baseline="a")


def test_one_run_has_no_interval_and_one_pair_no_p_value():
    comparison = compare([result("a", "pong", 0, 0.759), result("b", "pong", 0, 0.7)])
    best, other = comparison.rows
    assert (best.mean_interval, best.iqm_interval, other.paired.p_value) == (None, None, None)
    text = str(comparison)
    assert "[" not in text
    assert "p =" not in text
    assert "-0.059 to a (one pair)" in text
    # One run on each of two games: still nothing to draw from.
    (row,) = compare([result("a", "pong", 0, 0.5), result("a", "freeway", 0, 0.6)]).rows
    assert row.mean_interval is None


def test_two_games_are_stratified():
    # All spread is between the games: drawing within each, nothing moves.
    results = [result("a", game, seed, f1) for game, f1 in (("pong", 0.9), ("freeway", 0.1)) for seed in range(3)]
    row = compare(results).rows[0]
    np.testing.assert_allclose([row.mean_interval.low, row.mean_interval.high], 0.5)


def saved(method, seed, factor, **changes):
    """By the default probe: F1 orders the methods the other way round."""
    scores = {"labels_saved": factor, "r2": 0.5, "f1": 1 / factor, "accuracy": 0.5}
    probed = PROBED | {"probe": "ridge"}
    return replace(Measured("pong", method, seed, 256, scores, "store", probed=probed), **changes)


def test_labels_saved_are_compared_first_and_as_factors():
    results = [saved("a", 0, 2.0), saved("a", 1, 8.0), saved("b", 0, 1.0), saved("b", 1, 16.0)]
    comparison = compare(results, baseline="b")
    assert comparison.metric == "labels_saved"
    a, b = sorted(comparison.rows, key=lambda row: row.method)
    # sqrt(2 * 8) and sqrt(1 * 16); the plain means would be 5 and 8.5.
    assert (a.mean, b.mean) == (pytest.approx(4, rel=1e-9), pytest.approx(4, rel=1e-9))
    assert (a.iqm, b.iqm) == (pytest.approx(4, rel=1e-9), pytest.approx(4, rel=1e-9))
    assert 2 <= a.mean_interval.low <= 4 <= a.mean_interval.high <= 8
    # Factors 2 and 1/2 cancel.
    assert a.paired.difference == pytest.approx(1, rel=1e-9)
    text = str(comparison)
    assert "paired factor" in text
    assert "4 x [2, 8]" in text
    assert "x 1 to b (p = 1.000, 2 pairs)" in text


def test_the_interquartile_mean_of_factors_cuts_the_ends():
    # A quarter of four is one: 2 and 8 are left of 1, 2, 8 and 1000.
    (row,) = compare([saved("a", seed, factor) for seed, factor in enumerate((1.0, 1000.0, 2.0, 8.0))]).rows
    assert row.iqm == pytest.approx(4, rel=1e-9)


def test_a_bound_is_said():
    bounded = saved("a", 0, 16.0, bounds={"labels_saved": "at least"})
    results = [bounded, saved("b", 0, 2.0)]
    assert "at least 16 x" in str(compare(results))
    assert "at least" not in str(compare(results, metric="f1"))


def test_a_probe_without_label_curves_is_compared_by_f1(results):
    assert compare([replace(each, scores=each.scores | {"r2": 0.5}) for each in results]).metric == "f1"
    with pytest.raises(UserError, match="the results have no labels_saved, only f1, accuracy"):
        compare(results, metric="labels_saved")
    with pytest.raises(UserError, match="the results have no metric in common"):
        compare([replace(results[0], scores={"f1": 1.0}), replace(results[1], scores={"accuracy": 1.0})])


def test_ridge_and_linear_are_never_ranked_together(results):
    with pytest.raises(UserError, match=r"they differ in probe: linear \(a, b\), ridge \(c\)"):
        compare([*results, saved("c", 0, 2.0, store="store of pong")])
