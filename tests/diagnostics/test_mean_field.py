import numpy as np
import pytest
from scipy.stats import chi, norm

from manicap.diagnostics import glue, manifold_capacity
from tests.diagnostics.shapes import apart, correlated_centres, polygon, spheres


def seeded(seed=0):
    """1 for the draws of manifolds that were drawn with 0: equal numbers in both would not be independent."""
    return np.random.default_rng(seed)


def test_isolated_points_have_capacity_two():
    # E max(t, 0)^2 = 1/2 for standard normal t: Cover's two points per dimension.
    found = manifold_capacity([np.eye(6)[[i]] for i in range(6)], seeded())
    assert found.capacities == pytest.approx(np.full(6, 2.0), abs=1e-8)
    assert found.radii.tolist() == [0] * 6
    assert found.dimensions.tolist() == [0] * 6


@pytest.mark.parametrize("radius", [0.1, 1.0, 5.0])
def test_a_segment_has_the_capacity_of_its_angle_and_dimension_one(radius):
    # Segments from -R to R around a centre of length 1: a cone of angle w = 2 atan R in the plane. A random vector
    # falls into the cone with probability w / 2 pi (and keeps 2 squared units), onto one of its two edges with
    # probability 1/2 (and keeps 1): 1 / capacity = w / pi + 1/2. The anchor is along the segment in every draw, so that
    # (t . s / |s|)^2 is t^2, whose mean over the scaled draws is 1.
    found = manifold_capacity(apart([np.array([[-radius], [radius]])] * 2), seeded(), num_draws=1000)
    assert found.capacity == pytest.approx(1 / (2 * np.arctan(radius) / np.pi + 1 / 2), rel=0.03)
    assert found.dimension == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_a_circle_meets_the_integral_of_the_theory(radius):
    # With T = (t, t_0) and r = |t|: inside the cone (r <= R t_0) all of T is kept and the anchor is t / t_0; behind it
    # (R r <= -t_0) nothing is kept; otherwise T falls onto the cone's surface: (R r + t_0)^2 / (1 + R^2). For R = 1 the
    # cone equals its dual, and 1 / capacity = (D + 1) / 2.
    r, t_0 = np.meshgrid(np.linspace(0, 8, 600), np.linspace(-7, 7, 600))
    weight = chi.pdf(r, 2) * norm.pdf(t_0)
    weight /= weight.sum()
    inside, behind = r <= radius * t_0, radius * r <= -t_0
    kept = np.where(inside, r**2 + t_0**2, np.where(behind, 0, (radius * r + t_0) ** 2 / (1 + radius**2)))
    length = np.where(inside, r / np.where(inside & (t_0 > 0), t_0, 1), radius)
    found = manifold_capacity(apart([polygon(32, radius)] * 2), seeded(), num_draws=800)
    assert found.capacity == pytest.approx(1 / (weight * kept).sum(), rel=0.03)
    assert found.radius == pytest.approx(np.sqrt((weight * length**2).sum()), rel=0.03)
    assert found.dimension == pytest.approx(2, rel=0.005)
    if radius == 1:
        assert (weight * kept).sum() == pytest.approx(3 / 2, rel=5e-3)


def test_a_flat_ellipse_is_a_segment():
    flat = polygon(24) * [1, 1e-7]
    found = manifold_capacity(apart([flat] * 2), seeded(), num_draws=600)
    assert found.capacity == pytest.approx(1, rel=0.03)  # the segment of half-length 1, above


def test_gaussian_points_meet_the_values_of_the_authors():
    # Their example is 100 manifolds of 50 points in 5000 dimensions (seed 0): capacity 0.04, radius 1.47, dimension
    # 36.2. Here a tenth of the manifolds and fewer draws, which moves them by up to 4 %.
    points = np.random.RandomState(0).randn(10, 5000, 50)
    found = manifold_capacity(list(points.swapaxes(1, 2)), seeded(), num_draws=60, correct_centres=False)
    assert found.capacity == pytest.approx(0.04, rel=0.04)
    assert found.radius == pytest.approx(1.47, rel=0.04)
    assert found.dimension == pytest.approx(36.2, rel=0.04)


def test_the_correction_for_correlated_centres_meets_the_joint_solution():
    rng = seeded()
    manifolds = spheres(
        rng, correlated_centres(rng, 40, 120, shared=3, strength=4.0), points=8, dimension=2, radius=0.3
    )
    exact = glue(manifolds, seeded(1), num_draws=100)
    corrected = manifold_capacity(manifolds, seeded(1), num_draws=60)
    assert corrected.shared == 3
    assert corrected.capacity == pytest.approx(exact.capacity, rel=0.1)
    # Without it, the centres look long and the manifolds small.
    assert manifold_capacity(manifolds, seeded(1), num_draws=60, correct_centres=False).capacity > 1.4 * exact.capacity


def test_correlations_do_not_change_the_capacity_of_points():
    # Cover's theorem asks only for general position. The correction gives it back exactly: p^2 = p t_0 for a point.
    centres = correlated_centres(seeded(), 12, 30, shared=2, strength=5.0)
    found = manifold_capacity(list(centres[:, None]), seeded())
    assert found.shared >= 2
    assert found.capacity == pytest.approx(2, abs=1e-6)


def test_centres_on_a_line_keep_their_length():
    # Removing the line would leave nothing; three values of a variable on one axis are such centres.
    found = manifold_capacity([np.array([[x, y] for y in (-1.0, 1.0)]) for x in (-3.0, 1.0, 2.0)], seeded())
    assert found.shared == 0
    assert np.isfinite(found.capacity)


def test_larger_manifolds_have_a_lower_capacity():
    rng = seeded()
    centres, around = rng.standard_normal((6, 1, 40)), rng.standard_normal((6, 15, 40))
    small, large = (manifold_capacity(list(centres + size * around), seeded()) for size in (0.1, 1.0))
    assert 2 > small.capacity > 1.3 * large.capacity
    assert small.radius < large.radius


def test_what_cannot_be_measured_is_named():
    with pytest.raises(ValueError, match="at least 2 manifolds"):
        manifold_capacity([np.ones((3, 2))], seeded())
    with pytest.raises(ValueError, match="manifold 0 is the mean"):
        manifold_capacity([np.ones((3, 2)), np.ones((4, 2))], seeded())
    with pytest.raises(ValueError, match="even"):
        manifold_capacity([np.ones((3, 2)), np.zeros((4, 2))], seeded(), num_draws=7)
