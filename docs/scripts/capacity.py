"""Manifold capacity by theory and by trial, on manifolds whose capacity is known: the tables of docs/diagnostics.md.

    python docs/scripts/capacity.py

Takes minutes on one core. Draws of directions and of manifolds come from different seeds.
"""

import numpy as np
from scipy.stats import chi, norm

from manicap.diagnostics import capacity_trend, glue, manifold_capacity, simulated_capacity

COUNT, WIDTH = 40, 200


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def spheres(centres: np.ndarray, points: int, axes: np.ndarray, seed: int = 1) -> list[np.ndarray]:
    """Random points on ellipsoids with these half-axes around the centres [P, N], each in random directions."""
    rng, found = generator(seed), []
    for centre in centres:
        basis = np.linalg.qr(rng.standard_normal((centres.shape[1], len(axes))))[0]
        around = rng.standard_normal((points, len(axes)))
        found.append(centre + (around / np.linalg.norm(around, axis=1, keepdims=True) * axes) @ basis.T)
    return found


def random_centres(seed: int = 0) -> np.ndarray:
    return generator(seed).standard_normal((COUNT, WIDTH)) / np.sqrt(WIDTH)


def common_centres(share: float, directions: int, seed: int = 0) -> np.ndarray:
    """Centres of length about 1 with this share of their variance in directions that all have in common.

    With one direction, all centres have the same component along it; with more, random ones.
    """
    rng = generator(seed)
    own = rng.standard_normal((COUNT, WIDTH)) / np.sqrt(WIDTH)
    basis = rng.standard_normal((directions, WIDTH)) / np.sqrt(WIDTH)
    weights = np.ones((COUNT, 1)) if directions == 1 else rng.standard_normal((COUNT, directions)) / np.sqrt(directions)
    return np.sqrt(1 - share) * own + np.sqrt(share) * weights @ basis


def sphere_capacity(dimension: int, radius: float) -> float:
    """1 / E F of a sphere, by its integral (tests/diagnostics/test_mean_field.py derives it)."""
    r, t = np.meshgrid(np.linspace(0, np.sqrt(dimension) + 8, 2000), np.linspace(-8, 8, 2000))
    weight = chi.pdf(r, dimension) * norm.pdf(t)
    inside, behind = r <= radius * t, radius * r <= -t
    kept = np.where(inside, r**2 + t**2, np.where(behind, 0, (radius * r + t) ** 2 / (1 + radius**2)))
    return float(weight.sum() / (weight * kept).sum())


def compare(name: str, manifolds: list[np.ndarray], centered: bool = True) -> None:
    simulated = simulated_capacity(manifolds, generator(11), num_draws=100, centered=centered)
    joint = glue(manifolds, generator(12), num_draws=300, centered=centered)
    plain = manifold_capacity(manifolds, generator(13), correct_centres=False)
    corrected = manifold_capacity(manifolds, generator(13))
    print(
        f"| {name} | {simulated.capacity:.3f} ± {simulated.standard_error:.3f} | {joint.capacity:.3f} ±"
        f" {joint.standard_error:.3f} | {plain.capacity:.3f} | {corrected.capacity:.3f} ({corrected.shared}) |",
        flush=True,
    )


def compare_measures() -> None:
    print("| manifolds | simulated | GLUE | mean field | mean field, corrected (directions) |\n|---|---|---|---|---|")
    centres = random_centres()
    compare("points", list(centres[:, None]))
    basis = generator(1).standard_normal((COUNT, 1, WIDTH)) / np.sqrt(WIDTH)
    compare("segments of half-length 1", list(centres[:, None] + basis * np.array([[-1.0], [1.0]])))
    compare("circles, R = 1, 24 points", spheres(centres, 24, np.ones(2)))
    compare("spheres, D = 5, R = 0.7, 60 points", spheres(centres, 60, np.full(5, 0.7)))
    compare("ellipsoids, half-axes 1, 1/2, ..., 1/5, 60 points", spheres(centres, 60, 1 / np.arange(1, 6)))
    for share in (0.5, 0.9):
        shape = np.full(3, 0.3)
        compare(f"D = 3, R = 0.3; all centres {share:.0%} the same", spheres(common_centres(share, 1), 30, shape), True)
        name = f"D = 3, R = 0.3; centres {share:.0%} in 5 shared directions"
        compare(name, spheres(common_centres(share, 5), 30, shape))


def raw_centres() -> None:
    """Without subtracting the mean of the centres, and without the correction: the bias of correlated centres."""
    print("\n| all centres the same by | mean field, lengths of whole centres | simulated |\n|---|---|---|")
    for share in (0.0, 0.5, 0.8, 0.9):
        manifolds = spheres(common_centres(share, 1), 30, np.full(3, 0.3))
        simulated = simulated_capacity(manifolds, generator(11), num_draws=60, centered=False)
        # Mirror images make the mean of the centres zero, so that nothing is subtracted.
        plain = manifold_capacity([*manifolds, *(-x for x in manifolds)], generator(13), correct_centres=False)
        print(f"| {share:.0%} | {plain.capacity:.2f} | {simulated.capacity:.2f} |", flush=True)


def count_points() -> None:
    print("\n| D | R | true capacity | 100 points | 1,000 points |\n|---|---|---|---|---|")
    for dimension in (5, 10, 20):
        for radius in (0.3, 1.0, 3.0):
            true = sphere_capacity(dimension, radius)
            cells = []
            for points in (100, 1000):
                # Far apart: centres and axes of their own, which is what mean-field theory assumes.
                shapes = spheres(np.zeros((4, dimension)), points, np.full(dimension, radius), seed=dimension)
                placed = [np.column_stack([np.tile(np.eye(4)[i], (points, 1)), x]) for i, x in enumerate(shapes)]
                both = [*placed, *(-x for x in placed)]
                found = manifold_capacity(both, generator(13), num_draws=400, correct_centres=False)
                cells.append(f"{found.capacity:.4f} ({100 * (found.capacity / true - 1):+.0f} %)")
            print(f"| {dimension} | {radius:g} | {true:.4f} | {' | '.join(cells)} |", flush=True)


def extrapolate() -> None:
    print("\n| D | true | 25, 50, 100, 200 points | limit (95 % interval) |\n|---|---|---|---|")
    centres = generator(2).standard_normal((20, 400)) / np.sqrt(400)
    for dimension in (2, 5, 10, 20):
        trend = capacity_trend(spheres(centres, 200, np.ones(dimension), seed=3), generator(14), num_draws=200)
        assert trend.limit is not None
        assert trend.interval is not None
        measured = ", ".join(f"{capacity:.3f}" for capacity in trend.capacities)
        low, high = trend.interval
        true = 2 / (dimension + 1)
        print(f"| {dimension} | {true:.3f} | {measured} | {trend.limit:.3f} ({low:.3f} to {high:.3f}) |", flush=True)


if __name__ == "__main__":
    compare_measures()
    raw_centres()
    count_points()
    extrapolate()
