"""Units that carry no information."""

from typing import Any

from numpy.typing import NDArray

from manicap.diagnostics.samples import as_samples


def dead_fraction(features: NDArray[Any], tolerance: float = 1e-6) -> float:
    """Fraction of units that are constant over samples: a standard deviation of at most `tolerance` of the largest.

    After a ReLU these are the units that never fire (or always output their bias). If no unit varies, all are dead.
    """
    deviation = as_samples(features, "features").std(0)
    largest = deviation.max()
    return float((deviation <= tolerance * largest).mean()) if largest > 0 else 1.0
