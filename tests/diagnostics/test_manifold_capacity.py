import numpy as np
import pytest

from manicap.diagnostics.manifold_capacity import manifold_capacity


def seeded():
    return np.random.default_rng(0)


def test_isolated_points_have_capacity_two():
    # E max(t, 0)^2 = 1/2 for standard normal t: Cover's two points a dimension.
    found = manifold_capacity([np.eye(6)[[i]] for i in range(6)], seeded())
    assert found.capacities == pytest.approx(np.full(6, 2.0), abs=1e-8)
    assert found.radii.tolist() == [0] * 6
    assert found.dimensions.tolist() == [0] * 6


@pytest.mark.parametrize("radius", [0.1, 1.0, 5.0])
def test_a_line_segment_has_the_capacity_of_its_angle(radius):
    # Segments from -R to R around a centre of length 1, each along an axis of its own: a cone of angle w = 2 atan R in
    # the plane. A random vector falls into the cone with probability w / 2 pi (and keeps 2 squared units), onto one of
    # its two edges with probability 1/2 (and keeps 1): 1 / capacity = w / pi + 1/2.
    centres = np.concatenate([np.eye(6, 12), -np.eye(6, 12)])  # their mean is zero
    along = np.concatenate([np.eye(6, 12, 6)] * 2)
    segments = [np.stack([c - radius * a, c + radius * a]) for c, a in zip(centres, along, strict=True)]
    expected = 1 / (2 * np.arctan(radius) / np.pi + 1 / 2)
    assert manifold_capacity(segments, seeded(), num_draws=4000).capacity == pytest.approx(expected, rel=0.01)


def test_gaussian_points_meet_the_values_of_the_authors():
    # Their example is 100 manifolds of 50 points in 5000 dimensions (seed 0): capacity 0.04, radius 1.47, dimension
    # 36.2. Here a fifth of the manifolds and half of the draws, which moves them by up to 3 %.
    points = np.random.RandomState(0).randn(20, 5000, 50)
    found = manifold_capacity(list(points.swapaxes(1, 2)), seeded(), num_draws=100)
    assert found.capacity == pytest.approx(0.04, rel=0.03)
    assert found.radius == pytest.approx(1.47, rel=0.03)
    assert found.dimension == pytest.approx(36.2, rel=0.03)


def test_rotation_and_scale_change_nothing():
    rng = seeded()
    points = [rng.standard_normal(8) + 0.5 * rng.standard_normal((10, 8)) for _ in range(5)]
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    # The reduced basis turns too, so that other draws meet the points: equal up to their noise.
    first = manifold_capacity(points, seeded(), num_draws=4000)
    second = manifold_capacity([7 * x @ rotation + 3 for x in points], seeded(), num_draws=4000)
    assert first.capacity == pytest.approx(second.capacity, rel=0.02)
    assert first.radius == pytest.approx(second.radius, rel=0.02)


def test_larger_manifolds_and_a_margin_lower_the_capacity():
    rng = seeded()
    centres, around = rng.standard_normal((6, 1, 40)), rng.standard_normal((6, 15, 40))
    small = manifold_capacity(list(centres + 0.1 * around), seeded())
    large = manifold_capacity(list(centres + 1.0 * around), seeded())
    assert 2 > small.capacity > 1.3 * large.capacity
    assert small.radius < large.radius
    with_margin = manifold_capacity(list(centres + 0.1 * around), seeded(), margin=0.5)
    assert with_margin.capacity < 0.8 * small.capacity


def test_the_mixture_is_the_harmonic_mean():
    found = manifold_capacity([np.eye(3)[[0]], np.eye(3)[[1]] + [[0, 0, 1], [0, 0, -1]]], seeded())
    assert found.capacity == pytest.approx(2 / (1 / found.capacities[0] + 1 / found.capacities[1]), rel=1e-12)


def test_what_cannot_be_measured_is_named():
    with pytest.raises(ValueError, match="at least 2 manifolds"):
        manifold_capacity([np.ones((3, 2))], seeded())
    with pytest.raises(ValueError, match="manifold 0 is the mean"):
        manifold_capacity([np.ones((3, 2)), np.ones((4, 2))], seeded())
    with pytest.raises(ValueError, match="even"):
        manifold_capacity([np.ones((3, 2)), np.zeros((4, 2))], seeded(), num_draws=7)
