"""What a run trains on, behind one small interface."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manicap.algorithms.base import Batch, MethodContext

Rows = NDArray[np.int64]


class SampleOrder(Protocol):
    """The samples of a split, and how an epoch goes through them."""

    per_epoch: int
    size: str
    """`80 samples of 2 frames`"""
    remedy: str
    """What to do if these do not fill a batch: `collect more steps`."""

    def rows(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """What `batch` of the data needs to fetch the samples: one row per sample first."""
        ...

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Samples of one epoch."""
        ...


class EachOnce:
    """Every sample once per epoch."""

    def __init__(self, count: int, what: str = "images", remedy: str = "take more of them") -> None:
        self.per_epoch, self.size, self.remedy = count, f"{count} {what}", remedy

    def rows(self, index: NDArray[np.int64]) -> Rows:
        return index

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.permutation(self.per_epoch)


class TrainingData(Protocol):
    """What the loop asks of its data."""

    context: MethodContext
    """What a method must know before it is built."""
    fingerprint: str
    """Names the bytes that are trained on; part of every checkpoint."""

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        """The samples of `train` and, where the loop shall validate, of `val`."""
        ...

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        """The samples of `rows`. What is drawn depends on the seed and the stream's name (of the step) alone."""
        ...
