"""Exact values with all labels: those of the default probe, names too, from few frames and from many."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from manicap.library import evaluate
from manicap.probing.discriminant_probes import DiscriminantProbes
from manicap.probing.play_bench import PlayBench
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from tests.probing.conftest import block_contrast
from tests.probing.test_ridge_probes import make_split, scaled


@pytest.fixture(scope="module", params=[800, 3000])
def splits(request):
    """Every fold of few frames is held out in turn; of many, one, and the frames are summed in pieces."""
    return make_split(request.param, 0), make_split(300, 1)


@pytest.fixture(scope="module")
def decoded(splits):
    return DiscriminantProbes().fit(splits[0]).decode(splits[1].features)


def test_places_and_numbers_are_those_of_the_default_probe(splits, decoded, monkeypatch):
    monkeypatch.setattr("manicap.probing.subsets.DRAWS", 1)  # the first has all labels, which decode
    exact, numbers = RidgeProbes().fit(splits[0]).decode(splits[1].features)
    np.testing.assert_allclose(decoded[1], numbers, rtol=1e-3, atol=1e-3)
    assert (decoded[0][:, :2] == exact[:, :2]).mean() > 0.99
    # A name is read in another way, and as well.
    assert np.isnan(decoded[1][:, 2]).all()
    right = [(found[:, 2] == splits[1].labels[:, 2]).mean() for found in (decoded[0], exact)]
    assert right[0] > right[1] - 0.03 > 0.85


def test_numbers_stay_within_the_range_of_the_labels(splits):
    # As far from all others as no frame of training: the line ends beyond 0 or 99.
    train, test = splits
    strange = (train.features.mean(0) + 1000 * train.features.std(0))[None]
    _, numbers = DiscriminantProbes().fit(train).decode(np.concatenate([test.features, strange]))
    lowest, highest = train.labels[:, :2].min(0), train.labels[:, :2].max(0)
    assert (numbers[:, :2] >= lowest).all()
    assert (numbers[:, :2] <= highest).all()
    assert ((numbers[-1, :2] == lowest) | (numbers[-1, :2] == highest)).all()


def test_names_are_those_of_the_discriminants_of_scikit_learn(splits, decoded):
    train = splits[0]
    deviation = train.features.std(0)  # none is near the floor
    z, z_test = (each.features / deviation for each in splits)
    indicators = np.eye(3)[train.labels[:, 2]]
    agreement = []
    for ratio in (1e-4, 1e-3, 1e-2):
        fit = Ridge(alpha=len(z) * ratio * z.shape[1]).fit(z, indicators)
        # Indicators add up to 1, so that two of three say everything.
        fitted, fitted_test = fit.predict(z)[:, :2], fit.predict(z_test)[:, :2]
        expected = LinearDiscriminantAnalysis(solver="lsqr").fit(fitted, train.labels[:, 2]).predict(fitted_test)
        agreement.append((decoded[0][:, 2] == expected).mean())
    assert max(agreement) > 0.97


def test_the_scale_of_features_does_not_matter(splits, decoded):
    for factor in (0.01, 100):
        train, test = (scaled(each, factor) for each in splits)
        exact, numbers = DiscriminantProbes().fit(train).decode(test.features)
        assert (exact == decoded[0]).mean() > 0.99
        np.testing.assert_allclose(numbers, decoded[1], atol=0.05)


def test_labels_beyond_bytes_and_a_value_only_in_test():
    train, test = make_split(300, 0), make_split(100, 1)
    labels = train.labels.astype(np.int64) + 1000
    probe = DiscriminantProbes().fit(ProbeData(train.features, labels, train.episodes, train.kinds))
    exact = probe.predict(test.features)
    assert set(np.unique(exact[:, 2])) <= {1000, 1001, 1002}
    assert (exact[:, 2] == test.labels[:, 2].astype(np.int64) + 1000).mean() > 0.85


def test_an_evaluation_has_r2_and_pixels_but_no_label_curves(probe_store):
    found = evaluate(block_contrast, bench=PlayBench(probe_store), probe="discriminant", quiet=True)
    assert (found.probe, found.readings, found.saved) == ("discriminant", {}, {})
    assert found.scores.overall.r2 is not None
    assert found.f1 > found.floors["majority"].f1 + 0.2
    assert {"pixels, random (256)", "pixels, principal (256)"} <= set(found.floors)
    text = str(found)
    assert "discriminant probe on 600 features" in text
    assert "R2" in text
