import numpy as np
import pytest
from scipy.optimize import nnls

from manicap.diagnostics.cones import project_on_cones


@pytest.mark.parametrize(("points", "dimension"), [(1, 3), (8, 30), (12, 10), (30, 4), (150, 8)])
def test_it_projects_onto_the_cone_as_scipy_does(points, dimension):
    rng = np.random.default_rng(points)
    manifolds = [rng.standard_normal((points + i, dimension)) + 0.5 for i in range(3)]
    signs, targets = rng.choice([-1, 1], (10, 3)), rng.standard_normal((10, dimension))
    projections, residuals = project_on_cones(manifolds, signs, targets)
    stacked = np.concatenate(manifolds)
    for found, residual, sign, target in zip(projections, residuals, signs, targets, strict=True):
        rays = stacked * np.repeat(sign, [len(x) for x in manifolds])[:, None]
        expected = nnls(rays.T, target)[0] @ rays
        # With more points than dimensions the weights are not unique, the projection is.
        assert target - residual == pytest.approx(expected, abs=1e-6)
        assert found.weights @ rays[found.indices] == pytest.approx(expected, abs=1e-6)
        assert (found.weights > 0).all()


def test_points_that_occur_twice_or_at_the_origin_change_nothing():
    # The cone of (1, 0) and (1, 1); (0, 1) projects onto the diagonal, at (1/2, 1/2).
    rays = np.array([[1.0, 0], [1, 1], [1, 1], [0, 0], [2, 2]])
    residual = project_on_cones([rays], np.ones((1, 1), dtype=int), np.array([[0.0, 1]]))[1]
    assert residual[0] == pytest.approx([-0.5, 0.5], abs=1e-8)


def test_a_direction_behind_the_cone_has_no_projection():
    projections, residuals = project_on_cones([np.eye(2)], np.ones((1, 1), dtype=int), np.array([[-1.0, -2]]))
    assert projections[0].indices.tolist() == []
    assert residuals.tolist() == [[-1, -2]]


def test_the_sign_of_a_manifold_turns_its_rays():
    residual = project_on_cones([np.eye(2)[:1], np.eye(2)[1:]], np.array([[1, -1]]), np.array([[3.0, 4]]))[1]
    assert residual[0] == pytest.approx([0, 4], abs=1e-8)
