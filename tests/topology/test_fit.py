import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator
from manicap.topology.fit import FitConfig, fit_atlas
from manicap.topology.nerve import build_nerve
from manicap.topology.shapes import SHAPES


def nerve_of(name, seed, steps=2000):
    shape = SHAPES[name]
    points = shape.sample(4000, numpy_generator(seed, "shape"))
    atlas = fit_atlas(points, shape.num_charts, shape.dimension, seed, FitConfig(steps=steps), quiet=True)
    return atlas, build_nerve(atlas.membership, max_dimension=shape.dimension)


def test_a_circle_has_one_loop_and_its_charts_reconstruct_it():
    atlas, nerve = nerve_of("circle", seed=0, steps=300)
    assert nerve.betti_numbers == (1, 1)
    assert atlas.error < 0.15  # of the circle's radius
    assert np.bincount(atlas.membership.argmax(1), minlength=6).min() > 200  # no chart died


@pytest.mark.slow
@pytest.mark.parametrize("name", ["circle", "sphere", "torus"])
def test_the_topology_is_found_for_at_least_four_of_five_seeds(name):
    found = [nerve_of(name, seed)[1].betti_numbers for seed in range(5)]
    assert found.count(SHAPES[name].betti_numbers) >= 4, found


def test_the_same_seed_fits_the_same_atlas_and_a_scaled_cloud_too():
    points = SHAPES["circle"].sample(200, np.random.default_rng(0))
    config = FitConfig(steps=5)
    first, second = (fit_atlas(points, 4, 1, 7, config, quiet=True) for _ in range(2))
    assert np.array_equal(first.membership, second.membership)
    scaled = fit_atlas(1000 * points + 5, 4, 1, 7, config, quiet=True)
    assert scaled.membership == pytest.approx(first.membership, abs=1e-4)
    assert (scaled.centres - 5) / 1000 == pytest.approx(first.centres, abs=1e-4)


@pytest.mark.parametrize(
    ("points", "charts", "dimension", "message"),
    [
        (np.zeros((5, 2, 2)), 1, 1, "points"),
        (np.random.default_rng(0).random((50, 2)), 4, 3, "1 to 2 dimensions"),
        (np.random.default_rng(0).random((30, 2)), 4, 1, "at least 40 points"),
        (np.ones((50, 2)), 4, 1, "not all equal"),
        (np.where(np.arange(50) == 7, np.nan, 1.0)[:, None], 4, 1, "must be finite"),
        (np.where(np.arange(50) == 7, 1e200, 1.0)[:, None], 4, 1, "at most 1e\\+12"),
    ],
)
def test_what_cannot_be_fitted_is_told(points, charts, dimension, message):
    with pytest.raises(UserError, match=message):
        fit_atlas(points, charts, dimension)
