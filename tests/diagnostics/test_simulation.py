import numpy as np
import pytest
from scipy.optimize import linprog

from manicap.diagnostics import simulated_capacity
from manicap.diagnostics.simulation import is_separable


def test_separability_agrees_with_linear_programming():
    # 12 points of 4 manifolds in 3 dimensions: separable or not, by the labels. w . x >= 1 for all rows, or no such w.
    rng = np.random.default_rng(0)
    found, expected = [], []
    for _ in range(40):
        manifolds = [centre + 0.3 * rng.standard_normal((3, 3)) for centre in rng.standard_normal((4, 3))]
        signs = rng.choice([-1, 1], 4)
        rows = np.concatenate([y * x for y, x in zip(signs, manifolds, strict=True)])
        solved = linprog(np.zeros(3), A_ub=-rows, b_ub=-np.ones(12), bounds=[(None, None)] * 3)
        expected.append(solved.status == 0)
        found.append(is_separable(manifolds, signs))
    assert found == expected
    assert 5 < sum(found) < 35


def test_points_have_capacity_two():
    # n - 1 is binomial (P - 1, 1/2) by Cover's count: of variance 7/4 for 8 points, and P / (E n - 1/2) = 2.
    found = simulated_capacity(list(np.eye(8)[:, None]), np.random.default_rng(0), num_draws=300, centered=False)
    assert found.dimensions.mean() == pytest.approx(4.5, abs=4 * np.sqrt(7 / 4 / 300))
    assert found.dimensions.var() == pytest.approx(7 / 4, rel=0.3)
    assert found.capacity == pytest.approx(2, abs=4 * found.standard_error)


def test_a_manifold_around_the_origin_is_never_separable():
    manifolds = [np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]]), np.array([[0.0, 1, 0]])]
    found = simulated_capacity(manifolds, np.random.default_rng(0), num_draws=3, centered=False)
    assert found.dimensions.tolist() == [3.5] * 3


def test_directions_without_points_do_not_separate():
    # Both clouds surround the origin of their 3 dimensions, turned within 23: no labels are separable, n = 3.5.
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((23, 23)))[0][:3]
    found = simulated_capacity([rng.standard_normal((60, 3)) @ turn for _ in range(2)], rng, num_draws=3)
    assert found.dimensions.tolist() == [3.5] * 3


def test_given_labels_are_used():
    # Two equal points with one label: separable in one dimension, always.
    found = simulated_capacity([np.ones((1, 4))] * 2, np.random.default_rng(0), np.array([-1, -1]), 5, centered=False)
    assert found.dimensions.tolist() == [1] * 5
