import numpy as np
import pytest

from manicap.diagnostics import glue, simulated_capacity
from manicap.diagnostics.cones import ConeProjection
from manicap.diagnostics.effective_geometry import _anchors
from manicap.diagnostics.manifolds import in_own_span
from tests.diagnostics.shapes import apart, correlated_centres, polygon, spheres


def seeded():
    return np.random.default_rng(0)


def test_as_many_orthogonal_points_as_dimensions_have_capacity_two_exactly():
    # |projection of t|^2 + |projection of -t|^2 = |t|^2 = N for an orthant: N / 2 on average, for P = N points.
    found = glue(list(np.eye(6)[:, None]), seeded(), num_draws=4, centered=False)
    assert found.capacity == pytest.approx(2, abs=1e-6)
    assert (found.dimension, found.radius, found.utility) == (0, 0, 0)
    assert found.separable == 1


@pytest.mark.parametrize(("labels", "needed", "separable"), [([1, 1], 1 / 2, 1), ([1, -1], 1, 0)])
def test_two_equal_points_are_easy_with_one_label_and_impossible_with_two(labels, needed, separable):
    # One label: their cone is a ray, and |projection|^2 has the mean 1/2. Two: it is a line, and the mean is 1. On the
    # line itself t = 1 or -1, and the means are exact.
    found = glue([np.ones((1, 1))] * 2, seeded(), np.array(labels), num_draws=4, centered=False)
    assert found.capacity == pytest.approx(2 / needed, rel=1e-6)
    assert found.separable == separable


def test_directions_without_points_do_not_separate():
    # Both clouds surround the origin of their 3 dimensions, so their cone is all of them: |t - v|^2 = 3, in any space.
    clouds = [np.random.default_rng(seed).standard_normal((60, 3)) for seed in (1, 2)]
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((23, 23)))[0][:3]
    for basis in (np.eye(3), np.eye(3, 23), turn):
        found = glue([x @ basis for x in clouds], np.random.default_rng(0), num_draws=40)
        assert found.separable == 0
        assert found.capacity == pytest.approx(2 / 3, abs=1e-9)


def test_centring_leaves_one_direction_less():
    # Four points less their mean span 3 dimensions and add up to 0: with one label they surround the origin.
    pairs = [np.random.default_rng(seed).standard_normal((2, 10)) for seed in (3, 4)]
    found = glue(pairs, np.random.default_rng(0), labels=[1, 1], num_draws=40)
    assert found.separable == 0
    assert found.capacity == pytest.approx(2 / 3, abs=1e-9)


@pytest.mark.parametrize(("dimensions", "rank"), [(5, 5), (20, 12)])
def test_points_without_dead_directions_keep_their_angles(dimensions, rank):
    # The smallest of 5 axes is 1e-6 of the others: small, but not dead.
    points = np.random.default_rng(0).standard_normal((12, dimensions)) * np.append(np.ones(dimensions - 1), 1e-6)
    found = np.concatenate(in_own_span([points[:4], points[4:]]))
    assert found.shape == (12, rank)
    np.testing.assert_allclose(found @ found.T, points @ points.T, atol=1e-13)


def test_manifolds_apart_add_up_as_in_mean_field_theory():
    # Segments of half-length 1 need one dimension each (test_mean_field), circles of radius 1 need 3/2. Their cones are
    # orthogonal, so that the statistical dimensions add up: 2 segments and 2 circles.
    shapes = [np.array([[-1.0], [1.0]])] * 2 + [polygon(32)] * 2
    manifolds = apart(shapes)[:4]
    found = glue(manifolds, seeded(), num_draws=1200, centered=False)
    assert found.capacity == pytest.approx(4 / (2 * 1 + 2 * 3 / 2), rel=0.02)
    assert found.dimension == pytest.approx((1 + 1 + 2 + 2) / 4, rel=0.05)
    assert found.centre_alignment == pytest.approx(0, abs=0.1)


def test_the_capacity_is_its_decomposition():
    rng = seeded()
    found = glue(spheres(rng, rng.standard_normal((6, 20)), 6, 3, 0.8), rng, num_draws=40)
    assert found.capacity == pytest.approx(found.utility * (1 + found.radius**-2) / found.dimension, rel=1e-9)
    assert 0 < found.utility < 1


def test_it_predicts_the_simulation_also_for_correlated_centres():
    # The two have equal expectations: their difference is noise.
    rng = seeded()
    manifolds = spheres(rng, correlated_centres(rng, 10, 30, shared=2, strength=3.0), points=6, dimension=2, radius=0.4)
    predicted, found = glue(manifolds, rng, num_draws=200), simulated_capacity(manifolds, rng, num_draws=100)
    noise = np.hypot(predicted.standard_error, found.standard_error)
    assert abs(predicted.capacity - found.capacity) < 4 * noise
    assert noise < 0.05 * predicted.capacity


def test_centres_in_one_direction_are_aligned():
    centres = np.eye(1, 12) + 0.2 * seeded().standard_normal((5, 12))
    together = glue(spheres(seeded(), centres, 5, 2, 0.2), np.random.default_rng(1), num_draws=40, centered=False)
    separate = glue(spheres(seeded(), np.eye(5, 12), 5, 2, 0.2), np.random.default_rng(1), num_draws=40, centered=False)
    assert together.centre_alignment > 0.5 > 0.2 > separate.centre_alignment
    assert together.capacity < separate.capacity


def test_axes_that_manifolds_share_are_aligned():
    centres, segment = np.eye(4, 8), np.array([[-0.5], [0.5]])
    shared = [centre + segment * np.eye(8)[7] for centre in centres]
    own = [centre + segment * np.eye(8)[4 + i] for i, centre in enumerate(centres)]
    assert glue(shared, seeded(), num_draws=40, centered=False).axis_alignment == pytest.approx(1, abs=0.25)
    assert glue(own, seeded(), num_draws=40, centered=False).axis_alignment < 0.2


def test_the_anchor_of_a_manifold_that_is_not_touched_is_its_nearest_point():
    # v = (0, -1) is on the negative side of both points of the second manifold, by 1 and 2. The first carries weight.
    points = [np.array([[1.0, 0]]), np.array([[0.0, 2], [0, 1]])]
    projection = ConeProjection(np.array([0]), np.array([3.0]))
    assert _anchors(points, projection, np.array([0.0, -1]), np.array([1, 1])).tolist() == [[1, 0], [0, 1]]


def test_labels_must_fit_the_manifolds():
    with pytest.raises(ValueError, match=r"1 or -1 for each of 2 manifolds, got shape \[1, 3\]"):
        glue([np.eye(2), -np.eye(2)], seeded(), np.array([1, 1, -1]))
