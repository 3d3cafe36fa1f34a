"""Manifolds whose capacity is known."""

import numpy as np


def polygon(corners: int, radius: float = 1.0) -> np.ndarray:
    """Corners of a regular polygon: a circle, up to 1 - cos(pi / corners)."""
    angle = 2 * np.pi * np.arange(corners) / corners
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def apart(shapes: list[np.ndarray]) -> list[np.ndarray]:
    """Each shape [points, D] around a centre of length 1 with directions of its own, and the mirror image of all.

    No two centres or shapes share a direction but for the mirror images; the mean of the centres is zero.
    """
    width = sum(1 + shape.shape[1] for shape in shapes)
    placed, start = [], 0
    for shape in shapes:
        found = np.zeros((len(shape), width))
        found[:, start], found[:, start + 1 : start + 1 + shape.shape[1]] = 1, shape
        placed.append(found)
        start += 1 + shape.shape[1]
    return [*placed, *(-x for x in placed)]


def spheres(
    generator: np.random.Generator, centres: np.ndarray, points: int, dimension: int, radius: float
) -> list[np.ndarray]:
    """Random points on spheres around the centres [P, N], each in random directions."""
    found = []
    for centre in centres:
        basis = np.linalg.qr(generator.standard_normal((centres.shape[1], dimension)))[0]
        around = generator.standard_normal((points, dimension))
        found.append(centre + radius * (around / np.linalg.norm(around, axis=1, keepdims=True)) @ basis.T)
    return found


def correlated_centres(generator: np.random.Generator, count: int, width: int, shared: int, strength: float):
    """Random centres of length about 1, whose variance is mostly in a few directions that all share."""
    own = generator.standard_normal((count, width)) / np.sqrt(width)
    directions = generator.standard_normal((shared, width)) / np.sqrt(width)
    common = strength * generator.standard_normal((count, shared)) @ directions / np.sqrt(shared)
    return (own + common) / np.sqrt(1 + strength**2)
