import numpy as np
import pytest
from scipy.optimize import nnls

from manicap.diagnostics.nonnegative import solve_nonnegative


@pytest.mark.parametrize(("points", "dimension"), [(1, 3), (20, 50), (40, 10), (80, 60)])
def test_it_projects_onto_the_cone_as_scipy_does(points, dimension):
    # x^T G x / 2 - b^T x with G = A A^T and b = A t is |A^T x - t|^2 / 2 up to a constant: non-negative least squares.
    rng = np.random.default_rng(points)
    a, t = rng.standard_normal((points, dimension)) + 0.3, rng.standard_normal((dimension, 12))
    x = solve_nonnegative(a @ a.T, a @ t)
    assert (x >= 0).all()
    for found, target in zip(x.T, t.T, strict=True):
        expected, _ = nnls(a.T, target)
        # With more points than dimensions the weights are not unique, the projection is.
        assert a.T @ found == pytest.approx(a.T @ expected, abs=1e-6)


def test_points_that_occur_twice_share_their_weight():
    # One point (1, 0) twice, target (4, 1): the projection is (4, 0), weights 2 and 2.
    a = np.array([[1.0, 0], [1, 0]])
    assert solve_nonnegative(a @ a.T, a @ np.array([[4.0], [1]])) == pytest.approx(np.full((2, 1), 2.0), rel=1e-6)


def test_a_target_behind_the_cone_gets_no_weight():
    assert solve_nonnegative(np.eye(2), np.array([[-1.0], [-2.0]])).tolist() == [[0], [0]]
