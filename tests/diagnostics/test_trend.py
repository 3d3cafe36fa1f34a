import numpy as np
import pytest

from manicap.diagnostics import capacity_trend, glue
from manicap.diagnostics.trend import _extrapolate
from tests.diagnostics.shapes import spheres


@pytest.mark.parametrize("exponent", [0.2, 0.5, 2.0])
def test_the_law_is_recovered(exponent):
    points = np.array([25.0, 50, 100, 200])
    assert _extrapolate(points, (3 - 2 * points**-exponent)[None]) == pytest.approx([3], rel=0.03)


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
    clouds = [centre + 0.3 * rng.standard_normal((48, 40)) for centre in centres]
    falling = capacity_trend(clouds, np.random.default_rng(1), num_draws=24)
    assert falling.limit < 0.9 * falling.capacities[-1]
    low, high = falling.interval
    assert low <= falling.limit <= high
    assert "has not flattened" in falling.warning


def test_all_points_give_the_capacity_of_glue():
    rng = np.random.default_rng(0)
    manifolds = spheres(rng, rng.standard_normal((5, 12)), points=16, dimension=2, radius=0.7)
    found = capacity_trend(manifolds, np.random.default_rng(1), num_draws=16)
    assert found.capacities[-1] == pytest.approx(glue(manifolds, np.random.default_rng(1), num_draws=16).capacity)


def test_few_points_have_no_limit():
    found = capacity_trend([np.eye(3), np.eye(3) + 2], np.random.default_rng(0), num_draws=4)
    assert (found.limit, found.interval, found.has_flattened) == (None, None, False)
    assert "too few points" in found.warning
