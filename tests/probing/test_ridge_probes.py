"""The default probe as a whole: independent of scale, honest about labels, sound on bad input."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from manicap.core.errors import UserError
from manicap.probing.labels_saved import labels_saved
from manicap.probing.reading import Reading
from manicap.probing.ridge import RidgeFit
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData

VARIABLES = ("place", "number", "name")
KINDS = ("place", "number", "class")


def make_split(count, seed, noise=0.5, num_features=40, unread=()):
    """Features from which a place, a number and a name can be read, each along a direction of its own."""
    rng = np.random.default_rng(seed)
    labels = np.stack([rng.integers(0, high, count) for high in (100, 12, 3)], 1).astype(np.uint8)
    hidden = np.concatenate([labels[:, :2] / [30, 4], 0.4 * np.eye(3)[labels[:, 2]]], 1)
    hidden[:, list(unread)] = 0
    mixing = np.random.default_rng(99).standard_normal((5, num_features))
    features = hidden @ mixing + noise * rng.standard_normal((count, num_features))
    return ProbeData(features.astype(np.float32), labels, np.arange(count) // 40, KINDS)


def scaled(data, factor):
    return ProbeData(data.features * np.float32(factor), data.labels, data.episodes, data.kinds)


@pytest.fixture(scope="module")
def splits():
    return make_split(800, 0), make_split(300, 1)


@pytest.fixture(scope="module")
def probe(splits):
    return RidgeProbes().fit(splits[0])


@pytest.fixture(scope="module")
def reading(splits, probe):
    return probe.read(splits[1], VARIABLES)


@pytest.fixture
def two_draws(monkeypatch):
    """The first two of the five orders in which frames are labelled: each is fitted on its own."""
    monkeypatch.setattr("manicap.probing.subsets.DRAWS", 2)


def test_a_reading_has_curves_for_every_variable(reading):
    assert reading.counts == (50, 100, 200, 400, 800)
    assert set(reading.curves) == set(VARIABLES)
    curves = reading.scores(VARIABLES)
    assert curves.shape == (5, 5, 3)
    assert np.isnan(curves[1:, 4]).all()  # all labels are drawn once
    assert not np.isnan(curves[:, :4]).any()
    means = np.nanmean(curves, 0)
    assert (means[4] >= means[0]).all()
    assert (means[4] > 0.8).all()
    assert reading.unconverged == 0
    assert set(reading.at_end) <= {"name"}  # three clusters are separated by weights of any size


def test_all_labels_give_the_regression_of_scikit_learn(splits, reading):
    train, test = splits
    standard = train.features.std(0)  # none is near the floor
    z, z_test = train.features / standard, test.features / standard
    best = max(
        Ridge(alpha=alpha).fit(z, train.labels[:, 0]).score(z_test, test.labels[:, 0])
        for alpha in np.logspace(-3, 5, 33)
    )
    # Chosen by cross-validation, not by the test frames: nearly the best there is.
    assert reading.curves["place"][0][-1] == pytest.approx(best, abs=0.005)


@pytest.mark.parametrize("factor", [0.01, 100])
def test_the_scale_of_features_does_not_matter(splits, probe, reading, factor, two_draws):
    train, test = (scaled(each, factor) for each in splits)
    other = RidgeProbes().fit(train)
    found = other.read(test, VARIABLES)
    np.testing.assert_allclose(found.scores(VARIABLES), reading.scores(VARIABLES)[:2], atol=2e-3)
    assert found.bits == pytest.approx(reading.bits, rel=1e-2)
    assert found.control == pytest.approx(reading.control, abs=2e-3)
    exact, numbers = other.decode(test.features)
    same, expected = probe.decode(splits[1].features)
    assert (exact == same).mean() > 0.99
    np.testing.assert_allclose(numbers, expected, atol=0.05)


def test_the_same_seed_gives_the_same_numbers(splits, reading):
    train, test = splits
    assert RidgeProbes().fit(train).read(test, VARIABLES) == reading


def test_another_seed_labels_other_frames(splits, reading, two_draws):
    train, test = splits
    found = RidgeProbes(seed=1).fit(train).read(test, VARIABLES)
    for variable in ("place", "number"):
        assert found.curves[variable][0][:-1] != reading.curves[variable][0][:-1]


def test_decoding_gives_exact_values_and_regressed_numbers(splits, probe):
    _, test = splits
    exact, numbers = probe.decode(test.features)
    assert exact.dtype == np.uint8
    assert (exact[:, 2] == test.labels[:, 2]).mean() > 0.9
    assert np.isnan(numbers[:, 2]).all()
    assert np.abs(numbers[:, 0] - test.labels[:, 0]).mean() < 5
    assert (exact[:, 1] == test.labels[:, 1]).mean() > 0.5  # 12 values, chance 0.08


def test_a_test_frame_unlike_any_other_is_read_within_the_range_of_the_labels(splits, probe, reading):
    """Features a thousand deviations away, as in a life that looks like no other: an unlimited line would be anywhere,
    and one such frame would make R2 worthless for all."""
    train, test = splits
    strange = ProbeData(test.features.copy(), test.labels, test.episodes, test.kinds)
    strange.features[0] = train.features.mean(0) + 1000 * train.features.std(0)
    numbers = probe.decode(strange.features)[1][:, :2]
    lowest, highest = train.labels[:, :2].min(0), train.labels[:, :2].max(0)
    assert (numbers >= lowest).all()
    assert (numbers <= highest).all()
    assert ((numbers[0] == lowest) | (numbers[0] == highest)).all()
    found = probe.read(strange, VARIABLES)
    # One of 300 frames is at most a whole range off: 99^2 over 300 times the variance of 100 even values, 833: 0.04;
    # of 12 even values 11^2 / (300 x 11.9): 0.03. Few labels have a smaller range.
    for name in ("place", "number"):
        gap = np.array(reading.curves[name], float) - np.array(found.curves[name], float)
        assert np.nanmax(gap) < 0.05
    assert probe.read(strange, VARIABLES).components[8] > reading.components[8] - 0.05


def test_limited_predictions_have_the_shorter_description(monkeypatch):
    # A label lies within the range of those seen before, but for a few new extremes. A prediction that is moved to the
    # end of that range comes nearer to it, and what is nearer gives it more probability.
    split = make_split(400, 0, noise=2.0, num_features=10)
    train = ProbeData(split.features, split.labels[:, :1], split.episodes, KINDS[:1])
    limited = RidgeProbes().fit(train).bits_
    monkeypatch.setattr(RidgeFit, "limit", lambda fit, predictions: predictions)
    assert limited[0] < RidgeProbes().fit(train).bits_[0] - 1


def test_fewer_noise_means_fewer_labels():
    clean, noisy = ([make_split(700, seed, noise) for seed in (0, 1)] for noise in (0.3, 2.0))
    own, other = (RidgeProbes().fit(train).read(test, VARIABLES) for train, test in (clean, noisy))
    saved = labels_saved(own.counts, own.scores(VARIABLES), other.scores(VARIABLES), np.zeros(3), VARIABLES)
    assert saved.overall.factor > 3
    assert own.total_bits < other.total_bits < 3 * own.plain_bits
    assert own.plain_bits == 700 * 8  # 256 values: 8 bits a label


def test_a_variable_that_is_not_in_the_features_is_not_read():
    train, test = (make_split(300, seed, unread=(0,)) for seed in (0, 1))
    found = RidgeProbes().fit(train).read(test, VARIABLES)
    assert max(score for score in found.curves["place"][0] if score is not None) < 0.1
    assert found.curves["number"][0][-1] > 0.8


def test_control_labels_are_as_hard_as_another_variable(reading):
    # The features hold an order, not each value: exchanged values cannot be read from 40 features.
    assert set(reading.control) == {"place", "number"}
    assert reading.control["place"] < 0.3


def test_the_control_of_two_values_is_as_easy_as_they_are(splits):
    # Exchanged, y becomes a + b - y: the line with the opposite slope is as far from it.
    train, test = (
        ProbeData(each.features, (each.labels[:, :1] > 49).astype(np.uint8), each.episodes, ("number",))
        for each in splits
    )
    found = RidgeProbes().fit(train).read(test, ("half",))
    assert found.curves["half"][0][-1] > 0.5
    assert found.control["half"] == pytest.approx(found.curves["half"][0][-1], abs=1e-5)


def test_wider_is_not_worse_and_all_directions_give_the_score_of_all_features(splits):
    train, test = make_split(700, 0, num_features=16), make_split(300, 1, num_features=16)
    found = RidgeProbes().fit(train).read(test, VARIABLES)
    assert list(found.components) == list(found.random) == [8, 16]
    everything = np.mean([found.curves[name][0][-1] for name in ("place", "number")])
    # Sixteen of sixteen directions, chosen by one fold rather than five.
    assert found.components[16] == pytest.approx(everything, abs=0.01)
    assert found.random[16] == pytest.approx(everything, abs=0.01)
    assert found.random[8] < found.random[16]


def test_a_reading_survives_json(reading):
    import json

    assert Reading.from_dict(json.loads(json.dumps(reading.to_dict()))) == reading


@pytest.mark.parametrize("case", ["one value", "value only in test", "constant", "duplicates", "few frames", "wide"])
def test_bad_input_is_read_as_well_as_it_can_be(case):
    width = 900 if case == "wide" else 40
    train, test = (make_split(count, seed, num_features=width) for seed, count in enumerate((300, 200)))
    if case == "one value":
        train.labels[:, 0], train.labels[:, 2] = 50, 1
    elif case == "value only in test":
        test.labels[:, 0], test.labels[:5, 2] = 255, 9
    elif case == "constant":
        train.features[:] = test.features[:] = 3
    elif case == "duplicates":
        train, test = (
            ProbeData(np.tile(each.features, 2), each.labels, each.episodes, each.kinds) for each in (train, test)
        )
    elif case == "few frames":
        train = ProbeData(train.features[:12], train.labels[:12], train.episodes[:12], train.kinds)
    probe = RidgeProbes().fit(train)
    found = probe.read(test, VARIABLES)
    scores = found.scores(VARIABLES)
    assert np.isfinite(scores[0]).all()
    assert np.isfinite(list(found.bits.values())).all()
    exact, _ = probe.decode(test.features)
    if case == "one value":
        assert set(exact[:, 0]) == {50}
        assert set(exact[:, 2]) == {1}
    if case == "value only in test":
        assert (scores[0, :, 0] == 0).all()  # does not vary in test: nothing to explain
    if case in ("duplicates", "wide"):
        assert (scores[0, -1] > 0.6).all()
    if case == "constant":
        assert (scores[0, :, :2] <= 0.01).all()


def test_features_that_are_not_finite_are_refused_with_a_sentence(splits):
    train, _ = splits
    features = train.features.copy()
    features[5, 7] = np.nan
    with pytest.raises(UserError, match="1 of 40 features are NaN or infinite"):
        RidgeProbes().fit(ProbeData(features, train.labels, train.episodes, train.kinds))
