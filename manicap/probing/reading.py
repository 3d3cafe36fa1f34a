"""What the default probe finds in one encoder's features: scores by number of labels and by width, bits, controls."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Curve = tuple[tuple[float | None, ...], ...]
"""[draws, counts]; None where a draw has no subset of that size."""


@dataclass(frozen=True)
class Reading:
    counts: tuple[int, ...]
    """Numbers of labels."""
    curves: dict[str, Curve]
    """By variable: R2 of a place or a number, weighted F1 of a name, on the test frames."""
    bits: dict[str, float]
    """Description length of all training labels (see `description`)."""
    plain_bits: float
    """Bits of the labels of one variable without any features."""
    control: dict[str, float]
    """R2 of control labels: the values of a place or a number exchanged at random (arXiv 1909.03368)."""
    components: dict[int, float]
    """Mean R2 of places and numbers from the first k principal components, with all labels."""
    random: dict[int, float]
    """The same from k random directions."""
    at_end: tuple[str, ...]
    """Variables whose regularization lies at the end of its grid, with all labels."""
    unconverged: int
    """Fits of names that were stopped before they had converged."""
    layers: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Width and mean score of every layer of a network, from few labels (see `layers`); empty if it does not say."""

    def scores(self, variables: tuple[str, ...]) -> NDArray[np.float64]:
        """[draws, counts, V], NaN where there is none."""
        return np.stack([np.array(self.curves[name], np.float64) for name in variables], -1)

    @property
    def total_bits(self) -> float:
        return sum(self.bits.values())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Reading":
        curves = {name: tuple(map(tuple, curve)) for name, curve in values["curves"].items()}
        widths = {key: {int(k): score for k, score in values[key].items()} for key in ("components", "random")}
        plain = {key: tuple(values[key]) for key in ("counts", "at_end")}
        layers = {name: (int(width), score) for name, (width, score) in values["layers"].items()}
        return cls(**{**values, **plain, **widths, "curves": curves, "layers": layers})
