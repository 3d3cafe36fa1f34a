"""Training frames as the default probe takes them: standardised features, folds, and everything regressed from them.

Targets are columns: the places and numbers as they are; the same with their values exchanged at random, as a control
(arXiv 1909.03368): a probe that reads these too does not read an order, it remembers; and the indicator of every value.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.seeding import numpy_generator
from manicap.probing.metrics import Labels
from manicap.probing.sampling import ProbeData
from manicap.probing.standardisation import ROWS, Standardisation
from manicap.probing.subsets import Indices, assign_folds


class Piece(NamedTuple):
    z: Tensor
    """Standardised features float32 [n, F]."""
    y: Tensor
    """Targets float32 [n, T]."""
    folds: Indices


class Targets:
    """The columns regressed from features, for ordinal labels [n, V]."""

    def __init__(self, labels: Labels, seed: int) -> None:
        self.labels = labels.astype(np.int64)
        self.values = [np.unique(column) for column in self.labels.T]
        rng = numpy_generator(seed, "control labels")
        self._exchanged = [rng.permutation(found) for found in self.values]
        num_ordinal = labels.shape[1]
        groups = [*range(2 * num_ordinal)]
        for v, found in enumerate(self.values):
            groups += [2 * num_ordinal + v] * len(found)
        self.groups = torch.tensor(groups, dtype=torch.int64)
        """[T]: the columns that share a regularization; the first V are the variables themselves."""
        starts = 2 * num_ordinal + np.cumsum([0, *map(len, self.values)])
        self.indicators = [slice(*bounds) for bounds in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        """The columns of each variable's values."""

    def columns(self, rows: Indices) -> Tensor:
        chosen = self.labels[rows]
        parts = [chosen, self.control(chosen)]
        parts += [chosen[:, v, None] == found for v, found in enumerate(self.values)]
        return torch.from_numpy(np.concatenate(parts, 1).astype(np.float32))

    def control(self, labels: Labels) -> NDArray[np.int64]:
        """Labels with their values exchanged; a value that never occurs in training stays."""
        exchanged = labels.astype(np.int64)
        for v, (found, others) in enumerate(zip(self.values, self._exchanged, strict=True)):
            places = np.searchsorted(found, exchanged[:, v]).clip(max=len(found) - 1)
            known = found[places] == exchanged[:, v]
            exchanged[:, v] = np.where(known, others[places], exchanged[:, v])
        return exchanged


class LabelledFrames:
    def __init__(self, data: ProbeData, standardisation: Standardisation, targets: Targets, seed: int) -> None:
        self._features, self.standardisation, self.targets = data.features, standardisation, targets
        self.folds = assign_folds(data.episodes, seed)

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def width(self) -> int:
        return len(self.standardisation.kept)

    def take(self, rows: Indices) -> Piece:
        return Piece(self.standardisation(self._features[rows]), self.targets.columns(rows), self.folds[rows])

    def pieces(self, rows: Indices) -> Iterator[Piece]:
        """The rows in pieces, in the order of the file."""
        ordered = np.sort(rows)
        for start in range(0, len(ordered), ROWS):
            yield self.take(ordered[start : start + ROWS])

    def all_rows(self) -> Indices:
        return np.arange(len(self))
