import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.probing.standardisation import Standardisation


def test_features_are_centred_and_divided_by_their_deviation_or_the_floor():
    # Deviations 1, 2, 4 and 0.001: the median of 0.001, 1, 2, 4 is 1.5, the floor 0.45.
    signs = np.array([[1.0], [-1.0]] * 50)
    features = (signs * [1, 2, 4, 0.001] + 10).astype(np.float32)
    z = Standardisation.of(features)(features).numpy()
    np.testing.assert_allclose(np.abs(z), np.tile([1, 1, 1, 0.001 / 0.45], (100, 1)), rtol=2e-3)


@pytest.mark.parametrize("scale", [0.01, 1, 100])
def test_the_scale_of_features_does_not_matter(scale):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((500, 20)).astype(np.float32) * rng.exponential(size=20).astype(np.float32)
    plain, scaled = Standardisation.of(features), Standardisation.of(features * np.float32(scale))
    np.testing.assert_allclose(scaled(features * np.float32(scale)).numpy(), plain(features).numpy(), atol=1e-5)
    assert scaled.variance == pytest.approx(plain.variance, rel=1e-5)


def test_a_feature_that_wakes_up_in_test_does_not_dwarf_the_others():
    rng = np.random.default_rng(0)
    train = rng.standard_normal((500, 3)).astype(np.float32)
    train[:, 0] *= 1e-4
    test = np.ones((1, 3), np.float32)
    # Divided by its own deviation it would be 10,000; the floor is 0.3 of about 1.
    assert Standardisation.of(train)(test)[0, 0] < 4


def test_constant_features_are_left_out():
    features = np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32)
    features[:, 1], features[:, 2] = 0, 1e4
    found = Standardisation.of(features)
    assert found.kept.tolist() == [0, 3]
    assert found(features).shape == (100, 2)
    assert found.variance == pytest.approx(2, rel=1e-5)
    assert Standardisation.of(np.ones((5, 3), np.float32))(np.zeros((2, 3), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(bad):
    features = np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32)
    standard = Standardisation.of(features)
    features[3, 2] = bad
    with pytest.raises(UserError, match="NaN or infinite"):
        Standardisation.of(features)
    with pytest.raises(UserError, match="NaN or infinite"):
        standard(features)
