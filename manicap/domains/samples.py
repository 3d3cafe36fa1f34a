"""What a run trains on, behind one small interface."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manicap.algorithms.base import Batch, MethodContext

Rows = NDArray[np.int64]


class SampleOrder(Protocol):
    """The samples of a split, and their order in an epoch."""

    per_epoch: int
    size: str
    """`80 samples of 2 frames`"""
    remedy: str
    """What to do if they do not fill a batch: `collect more steps`."""

    def rows(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """What `TrainingData.batch` needs to fetch the samples: the first axis has one row per sample."""
        ...

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Samples of one epoch."""
        ...


class EachOnce:
    """Every sample once per epoch."""

    def __init__(self, count: int, what: str = "images", remedy: str = "use more of them") -> None:
        self.per_epoch, self.size, self.remedy = count, f"{count} {what}", remedy

    def rows(self, index: NDArray[np.int64]) -> Rows:
        return index

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.permutation(self.per_epoch)


class TrainingData(Protocol):
    """What the loop requires of its data.

    Data that can be read while a step runs also have `prepare(rows)`, which is told the rows of the next batch.
    """

    context: MethodContext
    """What a method needs to know before it is built."""
    fingerprint: str
    """Identifies the bytes to train on; part of every checkpoint."""

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        """The samples of `train` and, if the loop should validate, of `val`."""
        ...

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        """The samples of `rows`. What is drawn depends only on the seed and the stream's name (the step)."""
        ...
