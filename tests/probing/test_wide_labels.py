"""Labels need not be bytes: places of a larger screen, counts above 255."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from manicap.probing import LinearProbes, LogisticProbes, MajorityClass, NearestNeighbors, ProbeData, weighted_f1


@pytest.fixture(scope="module")
def data():
    """Two variables that the features tell: one of 300, 600 and 900, one of 0 and 1."""
    rng = np.random.default_rng(0)
    labels = np.stack([rng.choice([300, 600, 900], 240), rng.integers(0, 2, 240)], axis=1)
    features = np.concatenate([np.eye(3)[labels[:, 0] // 300 - 1], np.eye(2)[labels[:, 1]]], axis=1)
    features = (features + 0.05 * rng.standard_normal(features.shape)).astype(np.float32)
    return ProbeData(features, labels, np.arange(240) // 20)


@pytest.mark.parametrize("probe", [LinearProbes, LogisticProbes, NearestNeighbors])
def test_a_probe_decodes_numbers_beyond_a_byte(probe, data):
    decoded = probe().fit(data, data).predict(data.features)
    assert decoded.dtype == data.labels.dtype
    assert (decoded == data.labels).mean() > 0.99


def test_the_most_frequent_value_may_be_large(data):
    decoded = MajorityClass().fit(data, data).predict(data.features)
    values, counts = np.unique(data.labels[:, 0], return_counts=True)
    assert set(decoded[:, 0]) == {values[counts.argmax()]}


def test_f1_is_scikit_learns(data):
    rng = np.random.default_rng(1)
    guessed = rng.permuted(data.labels, axis=0)
    expected = [f1_score(data.labels[:, v], guessed[:, v], average="weighted") for v in range(2)]
    assert weighted_f1(data.labels, guessed) == pytest.approx(expected, rel=1e-12)


def test_negative_labels_are_refused(data):
    with pytest.raises(ValueError, match="whole numbers from 0"):
        weighted_f1(-data.labels, data.labels)
