"""Points drawn uniformly from surfaces of known topology."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    sample: Callable[[int, np.random.Generator], Points]
    dimension: int
    """Dimension of the surface, and so of its charts."""
    num_charts: int
    """Enough for a cover whose intersections are contractible."""
    betti_numbers: tuple[int, ...]
    """Components, loops, cavities: what the nerve should find."""


def sample_circle(count: int, generator: np.random.Generator) -> Points:
    """The unit circle in the plane."""
    angle = generator.uniform(0, 2 * np.pi, count)
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def sample_sphere(count: int, generator: np.random.Generator) -> Points:
    """The unit sphere in space."""
    x = generator.standard_normal((count, 3))
    unit: Points = x / np.linalg.norm(x, axis=1, keepdims=True)
    return unit


def sample_torus(count: int, generator: np.random.Generator, tube: float = 0.45) -> Points:
    """The torus in space: a tube of radius `tube` around the unit circle, uniform over its area."""
    # The outside of the tube has more area, in proportion to its distance from the axis: reject accordingly.
    around = np.empty(0)
    while len(around) < count:
        angle, height = generator.uniform(0, 2 * np.pi, count), generator.uniform(0, 1 + tube, count)
        around = np.concatenate([around, angle[height < 1 + tube * np.cos(angle)]])
    around, along = around[:count], generator.uniform(0, 2 * np.pi, count)
    distance = 1 + tube * np.cos(around)
    return np.stack([distance * np.cos(along), distance * np.sin(along), tube * np.sin(around)], 1)


SHAPES: dict[str, Shape] = {
    "circle": Shape(sample_circle, 1, 6, (1, 1)),
    "sphere": Shape(sample_sphere, 2, 10, (1, 0, 1)),
    "torus": Shape(sample_torus, 2, 64, (1, 2, 1)),
}
