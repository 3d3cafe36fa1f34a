"""Description length: bits to send all training labels to someone who has the features (arXiv 2003.12298, section 3.2).

The prequential code: the first labels are sent as they are, log2 K bits each; the labels from n to 2 n by the
probabilities that the probe fitted to the first n gives them. A probe that learns from few labels needs few bits.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_DEVIATION = 0.1
"""A probe that was never wrong on held-out labels is still not certain."""
STEPS = 256
"""In which a real number is sent, over its range."""
MOST_VALUES = 4096
"""Whole numbers of a wider range are sent as real ones."""


class Lattice:
    """Whole numbers from 0 for the columns of numbers [n, V]: labels as they are, real numbers in 256 even steps."""

    def __init__(self, numbers: NDArray[Any]) -> None:
        self.lowest, self.unit, self.size = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1]), 1
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            self.lowest, spread = numbers.min(0), np.ptp(numbers, axis=0)
            whole = (numbers == numbers.round()).all(0) & (spread < MOST_VALUES)
            self.unit = np.where(whole | (spread == 0), 1, spread / (STEPS - 1))
            self.size = int(((numbers.max(0) - self.lowest) / self.unit).round().max()) + 1

    def __call__(self, numbers: NDArray[Any]) -> Floats:
        return np.asarray((numbers - self.lowest) / self.unit, np.float64)


def number_probabilities(true: Floats, predicted: Floats, deviation: Floats, num_values: int) -> Floats:
    """What a probe that predicts a real number gives to the whole number that is true [n, V].

        p(y) = Phi((y + 1/2 - prediction) / deviation) - Phi((y - 1/2 - prediction) / deviation)

    `deviation` [V] is the probe's error on held-out labels. The first and the last of the K values take the tails.
    """
    scale = np.maximum(deviation, LEAST_DEVIATION)
    upper = np.where(true >= num_values - 1, np.inf, (true + 0.5 - predicted) / scale)
    lower = np.where(true <= 0, -np.inf, (true - 0.5 - predicted) / scale)
    # Both far above the prediction: 1 - 1 would be 0. The normal distribution is symmetric.
    flipped = lower > 0
    upper, lower = np.where(flipped, -lower, upper), np.where(flipped, -upper, lower)
    difference = torch.special.ndtr(torch.from_numpy(upper)) - torch.special.ndtr(torch.from_numpy(lower))
    return np.asarray(difference.numpy(), np.float64)


def code_bits(probabilities: Floats, num_values: int, num_seen: int) -> Floats:
    """Bits of the true values, from their probabilities, for a probe fitted to `num_seen` labels.

        log2 1 / ((1 - e) p + e / K),   e = 1 / (n + 2)

    A share e goes to all K values alike, so that a value that was never seen has a code too.
    """
    escape = 1 / (num_seen + 2)
    return np.asarray(-np.log2((1 - escape) * probabilities + escape / num_values), np.float64)
