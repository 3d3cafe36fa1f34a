import numpy as np
import pytest
from scipy.stats import ortho_group

from manicap.diagnostics.heads import head_cka, head_cosine, linear_cka, mean_of_pairs

RNG = np.random.default_rng(0)


def test_cka_by_hand():
    # Centred columns x = (1, -1, 0) and y = (1, 0, -1): (x.y)^2 / (x.x y.y) = 1 / 4, the squared correlation.
    x, y = np.array([[2.0], [0], [1]]), np.array([[1.0], [0], [-1]])
    assert linear_cka(x, y) == pytest.approx(1 / 4, abs=1e-15)


def test_cka_is_one_after_rotation_scaling_and_shift_and_equals_the_feature_form():
    x, y = RNG.standard_normal((50, 6)), RNG.standard_normal((50, 3))
    rotated = 3 * x @ ortho_group.rvs(6, random_state=0) + 10
    assert linear_cka(x, rotated) == pytest.approx(1, abs=1e-12)
    a, b = x - x.mean(0), y - y.mean(0)
    literal = np.linalg.norm(b.T @ a) ** 2 / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))
    assert linear_cka(x, y) == pytest.approx(literal, abs=1e-12)


def test_a_constant_head_has_no_cka():
    assert np.isnan(linear_cka(np.ones((4, 2)), RNG.standard_normal((4, 2))))


def test_cosine_by_hand():
    # Sample 1: heads at 60 degrees, cosine 1/2; sample 2: opposite, -1. Mean -1/4.
    heads = np.array([[[1.0, 0], [1, np.sqrt(3)]], [[0, 2.0], [0, -5]]])
    assert head_cosine(heads) == pytest.approx(np.array([[1, -1 / 4], [-1 / 4, 1]]), abs=1e-15)
    assert mean_of_pairs(head_cosine(heads)) == pytest.approx(-1 / 4, abs=1e-15)


def test_pairs_of_heads_are_the_pairwise_values():
    heads = RNG.standard_normal((30, 3, 5))
    found = head_cka(heads)
    assert found[0, 2] == pytest.approx(linear_cka(heads[:, 0], heads[:, 2]), abs=1e-12)
    assert mean_of_pairs(found) == pytest.approx((found[0, 1] + found[0, 2] + found[1, 2]) / 3, abs=1e-15)


def test_one_head_has_no_pairs():
    assert np.isnan(mean_of_pairs(head_cosine(np.ones((2, 1, 3)))))
