import math

import numpy as np
import pytest

from manicap.probing.labels_saved import (
    AT,
    LabelsSaved,
    comparison_count,
    joined_bound,
    labels_needed,
    labels_saved,
)

COUNTS = (50, 100, 200, 400, 800)


def curve(*scores, draws=1):
    """[draws, counts, 1]"""
    return np.tile(np.array(scores, float)[None, :, None], (draws, 1, 1))


def test_labels_are_interpolated_on_the_logarithm():
    scores = [0.1, 0.3, 0.5, 0.6, 0.7]
    assert labels_needed(COUNTS, scores, 0.3) == (pytest.approx(100), "")
    needed, bound = labels_needed(COUNTS, scores, 0.4)
    assert bound == ""
    assert needed == pytest.approx(math.sqrt(100 * 200))  # halfway


def test_beyond_the_curve_there_is_a_bound():
    scores = [0.1, 0.3, 0.5, 0.6, 0.7]
    assert labels_needed(COUNTS, scores, 0.8) == (800, "at least")
    assert labels_needed(COUNTS, scores, 0.05) == (50, "at most")


def test_a_curve_that_falls_stays_at_its_best():
    assert labels_needed(COUNTS, [0.1, 0.5, 0.2, 0.4, 0.6], 0.5) == (pytest.approx(100), "")
    needed, _ = labels_needed(COUNTS, [0.1, 0.5, 0.2, 0.4, 0.7], 0.6)
    assert needed == pytest.approx(math.sqrt(400 * 800))


def test_the_same_curve_saves_nothing():
    own = curve(0.1, 0.3, 0.5, 0.6, 0.7, draws=3)
    saved = labels_saved(COUNTS, own, own, np.zeros(1), ["x"])
    assert saved.at == AT == 200
    assert (saved.overall.factor, saved.overall.low, saved.overall.high) == pytest.approx((1, 1, 1))
    assert saved.overall.bound == ""


def test_the_mean_over_variables_is_geometric():
    encoder = np.concatenate([curve(0.1, 0.3, 0.5, 0.6, 0.7), curve(0.1, 0.2, 0.5, 0.6, 0.7)], 2)
    # The floor has 0.5 with 800 labels (4 x) and with 200 (1 x).
    floor = np.concatenate([curve(0.0, 0.1, 0.2, 0.3, 0.5), curve(0.1, 0.2, 0.5, 0.6, 0.7)], 2)
    saved = labels_saved(COUNTS, encoder, floor, np.zeros(2), ["a", "b"])
    assert saved.variables["a"].factor == pytest.approx(4)
    assert saved.variables["b"].factor == pytest.approx(1)
    assert saved.overall.factor == pytest.approx(2)
    assert saved.floor_labels == pytest.approx(400)


def test_a_floor_that_never_gets_there_gives_a_lower_bound_and_a_better_floor_an_upper_one():
    high, low = curve(0.5, 0.6, 0.7, 0.8, 0.9), curve(0.1, 0.2, 0.3, 0.35, 0.4)
    assert str(labels_saved(COUNTS, high, low, np.zeros(1), ["a"]).overall) == "at least 4 x"
    assert str(labels_saved(COUNTS, low, high, np.zeros(1), ["a"]).overall) == "at most 0.25 x"


def test_a_draw_beyond_the_floor_leaves_the_interval_open_on_its_side():
    # The mean of two draws, 0.45, lies on the floor's curve between 400 and 800 labels. But the second draw's 0.6 is
    # beyond all that the floor reaches (0.5): how many labels that would take is not known.
    floor = curve(0.1, 0.2, 0.3, 0.4, 0.5, draws=2)
    encoder = floor.copy()
    encoder[:, 2, 0] = [0.3, 0.6]
    saved = labels_saved(COUNTS, encoder, floor, np.zeros(1), ["a"])
    assert saved.overall.factor == pytest.approx(math.sqrt(400 * 800) / 200)
    assert saved.overall.bound == saved.variables["a"].bound == "at least"
    encoder[:, 2, 0] = [0.45, 0.05]  # mean 0.25: on the curve; 0.05 is below what the floor has with its fewest labels
    assert labels_saved(COUNTS, encoder, floor, np.zeros(1), ["a"]).overall.bound == "at most"
    encoder[:, 2, 0] = [0.6, 0.05]
    assert labels_saved(COUNTS, encoder, floor, np.zeros(1), ["a"]).overall.bound == ""


def test_a_draw_decides_the_mark_of_the_mean_only_where_no_mean_curve_does():
    # a: out of reach in all draws. b: within reach in the mean, and below the fewest labels in the second draw.
    floor = np.concatenate([curve(0.1, 0.2, 0.3, 0.4, 0.5, draws=2)] * 2, 2)
    encoder = floor.copy()
    encoder[:, 2, 0], encoder[:, 2, 1] = 0.6, [0.45, 0.05]
    saved = labels_saved(COUNTS, encoder, floor, np.zeros(2), ["a", "b"])
    assert [saved.variables[name].bound for name in "ab"] == ["at least", "at most"]
    assert saved.overall.bound == "at least"


def test_a_variable_that_neither_reads_counts_as_one_and_one_that_training_lost_counts_against_it():
    nothing, something = curve(-0.1, -0.2, 0.0, 0.0, 0.0), curve(0.1, 0.2, 0.3, 0.4, 0.5)
    neither = labels_saved(COUNTS, nothing, nothing - 0.1, np.zeros(1), ["a"])
    assert neither.unread == ("a",)
    assert neither.overall.factor == 1
    lost = labels_saved(COUNTS, nothing, something, np.zeros(1), ["a"])
    assert lost.unread == ()
    assert lost.overall.factor == pytest.approx(50 / 200)


def test_the_interval_is_students_over_the_draws_of_the_logarithm():
    # Scores of the encoder with 200 labels that the floor has with 200, 400, 800: factors 1, 2, 4.
    floor = curve(0.1, 0.2, 0.3, 0.4, 0.5, draws=3)
    encoder = floor.copy()
    encoder[:, 2, 0] = [0.3, 0.4, 0.5]
    saved = labels_saved(COUNTS, encoder, floor, np.zeros(1), ["a"]).overall
    assert saved.factor == pytest.approx(2)
    # Logs 0, log 2, 2 log 2: deviation log 2; t with 2 degrees of freedom is 4.303.
    margin = 4.303 * math.log(2) / math.sqrt(3)
    assert saved.low == pytest.approx(2 * math.exp(-margin), rel=1e-3)
    assert saved.high == pytest.approx(2 * math.exp(margin), rel=1e-3)


def test_sizes_drawn_once_serve_all_draws():
    encoder = curve(0.1, 0.3, 0.6, 0.6, 0.7, draws=2)
    floor = curve(0.1, 0.2, 0.3, 0.4, 0.6, draws=2)
    floor[1, 4] = np.nan
    assert labels_saved(COUNTS, encoder, floor, np.zeros(1), ["a"]).overall.factor == pytest.approx(4)


def test_fewer_labels_than_two_hundred_are_compared_at_the_most_there_are():
    assert comparison_count(COUNTS) == 200
    assert comparison_count((50, 100, 150)) == 150
    assert comparison_count((300,)) == 300


def test_it_survives_json():
    own = curve(0.1, 0.3, 0.5, 0.6, 0.7, draws=3)
    saved = labels_saved(COUNTS, own, own, np.zeros(1), ["x"])
    assert LabelsSaved.from_dict(saved.to_dict()) == saved


def test_a_mean_is_a_bound_if_its_bounds_agree():
    assert joined_bound(["", "at least", "at least"]) == "at least"
    assert joined_bound(["at most", "at least"]) == ""
    assert joined_bound(["", ""]) == ""
