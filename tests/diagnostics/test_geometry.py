import numpy as np
import pytest
from scipy.spatial.distance import pdist

from manicap.diagnostics.geometry import alignment, spread, uniformity


def test_alignment_by_hand():
    # Unit vectors: equal 0, at a right angle |.|^2 = 2, opposite 4; lengths do not count.
    a = np.array([[2.0, 0], [1, 0], [3, 0]])
    b = np.array([[5.0, 0], [0, 7], [-1, 0]])
    assert alignment(a, b) == pytest.approx((0 + 2 + 4) / 3, abs=1e-15)
    assert alignment(a, b, power=1) == pytest.approx((0 + np.sqrt(2) + 2) / 3, abs=1e-15)


def test_uniformity_by_hand():
    # Four points on the axes of the plane: four pairs at squared distance 2, two at 4, and t = 2.
    corners = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    assert uniformity(corners) == pytest.approx(np.log((4 * np.exp(-4) + 2 * np.exp(-8)) / 6), abs=1e-12)
    assert uniformity(np.ones((5, 3))) == pytest.approx(0, abs=1e-12)
    assert uniformity(np.zeros((5, 3))) == 0


def test_uniformity_equals_the_pairwise_distances_of_scipy():
    x = np.random.default_rng(0).standard_normal((40, 6))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert uniformity(x) == pytest.approx(np.log(np.exp(-2 * pdist(unit) ** 2).mean()), abs=1e-12)


def test_spread_is_zero_for_one_direction_and_one_for_a_balance():
    assert spread(np.array([[1.0, 0], [2, 0]])) == 0
    assert spread(np.array([[1.0, 0], [-3, 0]])) == 1
    # At a right angle the mean is (1/2, 1/2), of squared length 1/2.
    assert spread(np.eye(2)) == pytest.approx(np.sqrt(1 / 2), abs=1e-15)


def test_pairs_of_different_shape_and_numbers_that_are_not_finite_are_named():
    with pytest.raises(ValueError, match="one shape"):
        alignment(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="1 entries are not"):
        uniformity(np.array([[1.0, np.nan], [0, 1]]))
