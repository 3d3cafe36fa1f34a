"""Training frames as the converged probes take them: standardised features, folds, and what is regressed from them.

Targets are columns: the labels as numbers; the indicator of every value; and the labels with their values exchanged at
random, as a control (arXiv 1909.03368): a probe that reads these too does not read an order, it remembers. Two values
keep their order, or its reverse, and their control is as easy as they are.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.seeding import numpy_generator
from manicap.probing.metrics import Labels
from manicap.probing.ridge import FEW, GrowingRidge, RidgeFit, fit_frames
from manicap.probing.sampling import ProbeData
from manicap.probing.standardisation import ROWS, Standardisation
from manicap.probing.subsets import Indices, assign_folds

Wanted = Literal["numbers", "exact values", "controls"]
"""Each includes those before."""


class Piece(NamedTuple):
    z: Tensor
    """Standardised features float32 [n, F]."""
    y: Tensor
    """Targets float32 [n, T]."""
    folds: Indices


class Targets:
    """The columns regressed from features, for labels [n, V], up to those wanted."""

    def __init__(
        self, labels: Labels, seed: int, wanted: Wanted = "controls", numbers: NDArray[np.float64] | None = None
    ) -> None:
        """`numbers` [n, V] are regressed in the place of the labels, standardised.

        In float64: float32 could not tell 1,000,000.001 from 1,000,000, and has no squares of 1e-27 and 1e20.
        """
        self.wanted, self.labels = wanted, labels.astype(np.int64)
        self.numbers: NDArray[Any] = self.labels if numbers is None else numbers
        self.origin: Any = np.float32(0)
        self.unit: Any = np.float32(1)
        """Numbers in their own units are fitted ones times `unit` plus `origin`."""
        if numbers is not None:
            deviation = numbers.std(0)
            self.origin, self.unit = numbers.mean(0), np.where(deviation > 0, deviation, 1)
        self.values = [np.unique(column) for column in self.labels.T]
        rng = numpy_generator(seed, "control labels")
        self._exchanged = [rng.permutation(found) for found in self.values]
        V, sizes = labels.shape[1], [len(found) for found in self.values]
        starts = V + np.cumsum([0, *sizes])
        self.indicators = [slice(*bounds) for bounds in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        """The columns of each variable's values."""
        self.controls = slice(int(starts[-1]), int(starts[-1]) + V)
        groups = np.concatenate([np.arange(V), np.repeat(np.arange(V, 2 * V), sizes), np.arange(2 * V, 3 * V)])
        end = {"numbers": V, "exact values": self.controls.start, "controls": self.controls.stop}[wanted]
        self.groups = torch.from_numpy(groups[:end])
        """[T]: the columns that share a regularization; the first V are the variables themselves."""
        self.single_fold = (self.groups >= V) & (self.groups < 2 * V)
        """[T]: the indicators. Choosing by every fold of many frames takes minutes and reads exact values no better."""

    def columns(self, rows: Indices) -> Tensor:
        chosen = self.labels[rows]
        parts = [self.standardised(self.numbers[rows])]
        if self.wanted != "numbers":
            parts += [chosen[:, v, None] == found for v, found in enumerate(self.values)]
        if self.wanted == "controls":
            parts.append(self.control(chosen))
        return torch.from_numpy(np.concatenate(parts, 1).astype(np.float32))

    def standardised(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """As they are fitted."""
        return np.asarray((numbers - self.origin) / self.unit)

    def in_own_units(self, fitted: Tensor) -> NDArray[Any]:
        """Numbers [n, V] from fitted targets [n, T]: float32 if labels were regressed."""
        return np.asarray(fitted[:, : self.numbers.shape[1]].numpy() * self.unit + self.origin)

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

    def sums(self) -> GrowingRidge:
        """For regressions from many frames, which are yet to be added."""
        return GrowingRidge(self.width, len(self.targets.groups), self.standardisation.variance)

    def are_many(self, count: int) -> bool:
        """Whether so many frames are fitted from sums over them."""
        return count > max(FEW, self.width)

    def regress(
        self, rows: Indices, groups: Tensor, sums: GrowingRidge | None = None, fewer: RidgeFit | None = None
    ) -> RidgeFit:
        """Fit the first targets, as many as have a group, to the rows.

        `sums` are those over these rows, if many; `fewer` is a fit to some of them.
        """
        near, single_fold = None if fewer is None else fewer.ratios, self.targets.single_fold
        if sums is None:
            z, y, folds = self.take(rows)
            return fit_frames(z, y[:, : len(groups)], groups, folds, self.standardisation.variance, near, single_fold)

        def pieces(fold: int) -> Iterator[tuple[Tensor, Tensor]]:
            return ((z, y) for z, y, _ in self.pieces(rows[self.folds[rows] == fold]))

        return sums.fit(groups, pieces, near, single_fold)
