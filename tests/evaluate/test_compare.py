import copy

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.evaluate.compare import compare
from manicap.evaluate.metrics import Score, Scores
from manicap.evaluate.result import Evaluation

VALUES = {"a": {0: 0.5, 1: 0.6, 2: 0.7}, "b": {0: 0.4, 1: 0.45, 2: 0.5}}


def result(method, game, seed, f1, **changes):
    evaluation = Evaluation(
        game=game,
        protocol="fixed",
        annotation_set="corrected",
        probe="linear",
        probe_options={"batch_size": 64},
        width=256,
        feature_width=3456,
        seed=0,
        steps=100,
        store=f"store of {game}",
        encoder=None,
        threads=1,
        counts={"frames_train": 1, "frames_val": 1, "frames_test": 1},
        categories={"agent": ("x",)},
        scores=Scores(f1, f1 / 2, {"agent": Score(f1, f1 / 2)}, {"x": Score(f1, f1 / 2)}),
        seconds={},
    )
    for key, value in changes.items():
        setattr(evaluation, key, value)
    return {"method": method, "game": game, "seed": seed, "evaluation": evaluation.to_dict()}


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
        ({"protocol": "reference"}, r"differ in protocol: fixed \(a, b\), reference \(c\)"),
        ({"annotation_set": "ari-2019"}, "differ in annotation set"),
        ({"probe": "knn"}, "differ in probe:"),
        ({"probe_options": {"batch_size": 512}}, "differ in probe options"),
        ({"width": 3456}, r"differ in probe width: 256 \(a, b\), 3456 \(c\)"),
        ({"store": "another"}, "on pong with seed 0 they were probed on different stores"),
    ],
)
def test_what_differs_is_not_ranked_unless_asked(results, changes, message):
    results.append(result("c", "pong", 0, 0.9, **changes))
    with pytest.raises(UserError, match=message):
        compare(results)
    comparison = compare(results, allow_mismatch=True)
    assert len(comparison.mismatches) == 1
    assert f"not comparable: {comparison.mismatches[0]}" in str(comparison)


def test_methods_on_different_games_are_not_ranked(results):
    with pytest.raises(UserError, match="differ in games: a has pong, b has pong, c has freeway, pong"):
        compare([*results, result("c", "pong", 0, 0.1), result("c", "freeway", 0, 0.1)])


def test_mistakes_are_named(results):
    with pytest.raises(UserError, match="a on pong with seed 0 is given twice"):
        compare([*results, copy.deepcopy(results[0])])
    with pytest.raises(UserError, match="no results"):
        compare([])
    with pytest.raises(UserError, match="unknown method 'dim'"):
        compare(results, baseline="dim")


def test_two_games_are_stratified():
    # All spread is between the games: drawing within each, nothing moves.
    results = [result("a", game, seed, f1) for game, f1 in (("pong", 0.9), ("freeway", 0.1)) for seed in range(3)]
    row = compare(results).rows[0]
    np.testing.assert_allclose([row.mean_interval.low, row.mean_interval.high], 0.5)
