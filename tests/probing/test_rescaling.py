import numpy as np
import pytest

from manicap.probing.rescaling import rescale


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    found = rng.standard_normal((600, 6)) @ rng.standard_normal((6, 6)) + 3
    found[:, 2] = 7  # constant
    return found.astype(np.float32)


def test_a_factor_multiplies(features):
    assert rescale(features, "none", 500) is features
    np.testing.assert_allclose(rescale(features, "tenth", 500), features / 10, rtol=1e-6)
    np.testing.assert_allclose(rescale(features, "tenfold", 500), features * 10, rtol=1e-6)


def test_standardised_training_frames_have_mean_0_and_deviation_1(features):
    found = rescale(features, "standardised", 500)
    np.testing.assert_allclose(found[:500].mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(found[:500].std(0), [1, 1, 0, 1, 1, 1], atol=1e-5)
    # Other frames by the same map.
    expected = (features[500:, 0] - features[:500, 0].mean()) / features[:500, 0].std()
    np.testing.assert_allclose(found[500:, 0], expected, atol=1e-4)


def test_whitened_training_frames_are_uncorrelated(features):
    found = rescale(features, "whitened", 500)
    assert found.shape == (600, 5)
    np.testing.assert_allclose(np.cov(found[:500].T, bias=True), np.eye(5), atol=1e-4)
