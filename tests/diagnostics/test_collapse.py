import numpy as np
import pytest

from manicap.diagnostics import neural_collapse


def test_collapsed_classes_have_none_left():
    assert neural_collapse([np.ones((3, 2)), np.zeros((4, 2))]) == 0


def test_it_is_the_formula_of_the_paper():
    rng = np.random.default_rng(0)
    classes = [rng.standard_normal(5) + rng.standard_normal((6, 5)) for _ in range(4)]
    within = np.mean([np.cov(x.T, bias=True) for x in classes], axis=0)
    between = np.cov(np.stack([x.mean(0) for x in classes]).T, bias=True)
    # The pseudo-inverse of a matrix of rank 3, with room for rounding.
    expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 4
    assert neural_collapse(classes) == pytest.approx(expected, rel=1e-9)


def test_variation_across_the_means_does_not_count():
    # Means at (-1, 0) and (1, 0), variance 4 along the second axis only.
    assert neural_collapse([np.array([[x, -2.0], [x, 2.0]]) for x in (-1, 1)]) == pytest.approx(0, abs=1e-12)


def test_equal_means_are_infinitely_far_from_collapse():
    assert neural_collapse([np.array([[-1.0], [1]]), np.array([[-2.0], [2]])]) == np.inf
