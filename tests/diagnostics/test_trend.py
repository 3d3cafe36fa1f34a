import numpy as np
import pytest

from manicap.diagnostics import capacity_trend, glue
from manicap.diagnostics.trend import _extrapolate
from tests.diagnostics.shapes import spheres


@pytest.mark.parametrize("exponent", [0.2, 0.5, 2.0])
def test_the_law_is_recovered(exponent):
    points = np.array([25.0, 50, 100, 200])
    assert _extrapolate(points, (3 - 2 * points**-exponent)[None]) == pytest.approx([3], rel=0.03)


def test_growth_that_does_not_slow_down_has_no_limit():
    # In the logarithm of the number of points, and in the number itself.
    assert _extrapolate(np.array([8.0, 16, 32, 64]), np.array([[3.0, 4, 5, 6], [1, 2, 4, 8]])).tolist() == [np.inf] * 2


def test_a_constant_is_its_own_limit():
    assert _extrapolate(np.array([1.0, 2, 4]), np.full((1, 3), 0.7)) == pytest.approx([0.7], rel=1e-9)


def test_circles_flatten_and_gaussian_clouds_do_not():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 40)) / np.sqrt(40)
    circles = spheres(rng, centres, points=48, dimension=2, radius=0.7)
    flat = capacity_trend(circles, np.random.default_rng(1), num_draws=24)
    assert flat.points == (6, 12, 24, 48)
    assert flat.has_flattened
    assert flat.warning is None
    assert list(flat.capacities) == sorted(flat.capacities, reverse=True)
    clouds = [0.3 * rng.standard_normal(300) + 0.3 * rng.standard_normal((48, 300)) for _ in range(4)]
    falling = capacity_trend(clouds, np.random.default_rng(1), num_draws=24)
    # 48 points in 300 dimensions: each is a corner of its own.
    assert (falling.limit, falling.interval) == (None, None)
    assert "no limit in sight" in falling.warning
    spheres_of_5 = spheres(rng, centres, points=48, dimension=5, radius=0.7)
    slowing = capacity_trend(spheres_of_5, np.random.default_rng(1), num_draws=24)
    low, high = slowing.interval
    assert low <= slowing.limit <= high
    assert slowing.limit < slowing.capacities[-1]


def test_all_points_give_the_capacity_of_glue():
    rng = np.random.default_rng(0)
    manifolds = spheres(rng, rng.standard_normal((5, 12)), points=16, dimension=2, radius=0.7)
    found = capacity_trend(manifolds, np.random.default_rng(1), num_draws=16)
    assert found.capacities[-1] == pytest.approx(glue(manifolds, np.random.default_rng(1), num_draws=16).capacity)


def test_few_points_have_no_limit():
    found = capacity_trend([np.eye(3), np.eye(3) + 2], np.random.default_rng(0), num_draws=4)
    assert (found.limit, found.interval, found.has_flattened) == (None, None, False)
    assert "too few points" in found.warning
