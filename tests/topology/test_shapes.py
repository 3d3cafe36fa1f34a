import numpy as np
import pytest

from manicap.topology.shapes import SHAPES, sample_circle, sample_sphere, sample_torus


def test_points_lie_on_their_surface():
    rng = np.random.default_rng(0)
    assert np.linalg.norm(sample_circle(50, rng), axis=1) == pytest.approx(np.ones(50), abs=1e-12)
    assert np.linalg.norm(sample_sphere(50, rng), axis=1) == pytest.approx(np.ones(50), abs=1e-12)
    x, y, z = sample_torus(50, rng, tube=0.3).T
    assert np.hypot(np.hypot(x, y) - 1, z) == pytest.approx(np.full(50, 0.3), abs=1e-12)


def test_a_torus_is_drawn_evenly_over_its_area():
    # The outer half of the tube has the share 1/2 + tube / pi of the area: (pi + 2 r) / (2 pi).
    x, y, _ = sample_torus(200_000, np.random.default_rng(0), tube=0.45).T
    assert (np.hypot(x, y) > 1).mean() == pytest.approx(0.5 + 0.45 / np.pi, abs=0.004)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_generator_draws_the_same_points(name):
    first, second = (SHAPES[name].sample(20, np.random.default_rng(3)) for _ in range(2))
    assert first.shape == (20, SHAPES[name].dimension + 1)
    assert np.array_equal(first, second)
