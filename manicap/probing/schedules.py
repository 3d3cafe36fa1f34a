"""Early stopping and learning rates of many probes at once, each by its own validation accuracy.

`indices` says which probes an update is about: those still training.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Plateau:
    """`torch.optim.lr_scheduler.ReduceLROnPlateau(mode="max")` for each of `num` probes."""

    def __init__(
        self,
        num: int,
        learning_rate: float,
        factor: float,
        patience: int,
        min_learning_rate: float,
        threshold: float = 1e-4,
    ) -> None:
        self.factor, self.patience, self.min_learning_rate = factor, patience, min_learning_rate
        self.threshold = threshold
        self.learning_rates = np.full(num, learning_rate)
        self._best = np.full(num, -np.inf)
        self._bad_epochs = np.zeros(num, np.int64)

    def step(self, indices: Indices, accuracy: Floats) -> None:
        best, bad, rates = self._best[indices], self._bad_epochs[indices], self.learning_rates[indices]
        improved = accuracy > best * (1 + self.threshold)  # torch's relative threshold
        bad = np.where(improved, 0, bad + 1)
        reduce = bad > self.patience
        lower = np.maximum(rates * self.factor, self.min_learning_rate)
        # torch ignores decays under 1e-8.
        self.learning_rates[indices] = np.where(reduce & (rates - lower > 1e-8), lower, rates)
        self._best[indices] = np.where(improved, accuracy, best)
        self._bad_epochs[indices] = np.where(reduce, 0, bad)


class EarlyStopping:
    """Stops a probe after `patience` epochs without a new best accuracy."""

    def __init__(self, num: int, patience: int) -> None:
        self.patience = patience
        self.best = np.full(num, -np.inf)
        self.stopped = np.zeros(num, bool)
        self._waited = np.zeros(num, np.int64)

    def step(self, indices: Indices, accuracy: Floats) -> NDArray[np.bool_]:
        """Which of `indices` have a new best."""
        improved = accuracy > self.best[indices]
        self.best[indices] = np.maximum(accuracy, self.best[indices])
        self._waited[indices] = np.where(improved, 0, self._waited[indices] + 1)
        self.stopped[indices] = self._waited[indices] >= self.patience
        return improved
