"""The floor of every probe: always predict the most frequent label in training."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from manicap.probing.metrics import Labels, num_classes
from manicap.probing.sampling import ProbeData


@dataclass(frozen=True)
class MajorityConfig:
    """No settings."""


class MajorityClass:
    """Ignores the features. Ties go to the lowest label."""

    name = "majority"

    def __init__(self) -> None:
        self.config = MajorityConfig()

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        counts = [np.bincount(column, minlength=num_classes(train.labels)) for column in train.labels.T]
        self.labels_ = np.argmax(counts, axis=1).astype(train.labels.dtype)
        return self

    def predict(self, features: NDArray[np.float32]) -> Labels:
        """[n, V]"""
        return np.tile(self.labels_, (len(features), 1))
