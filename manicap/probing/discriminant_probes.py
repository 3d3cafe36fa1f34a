"""Exact values of all variables by penalized discriminant analysis, with all labels: converged, and quick.

    probe = DiscriminantProbes(seed=0).fit(train, val)
    probe.predict(test.features)                        # exact values [n, V]

The same features, folds and regularization as those of the default probe, without its label curves, and names are read
as places and numbers are: everything follows from one Gram matrix, whatever the number of variables and values.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from manicap.core.progress import Tracker
from manicap.core.ranges import Positive
from manicap.core.seeding import numpy_generator
from manicap.probing.discriminant import SHRINKAGE, ExactValues
from manicap.probing.feature_cache import Features
from manicap.probing.labelled import LabelledFrames, Targets
from manicap.probing.metrics import Labels
from manicap.probing.sampling import ProbeData
from manicap.probing.standardisation import ROWS, Standardisation

SOME = 500
"""Frames whose regularization the search among all frames begins with."""


@dataclass(frozen=True)
class DiscriminantConfig:
    """What a result depends on."""

    shrinkage: Positive = SHRINKAGE


class DiscriminantProbes:
    """Discriminants of all variables, and regressions of places and numbers."""

    name = "discriminant"

    def __init__(self, seed: int = 0, quiet: bool = True) -> None:
        self.config, self.seed, self.quiet = DiscriminantConfig(), seed, quiet

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        """Set `regression_` and `exact_`. `val` is not used: its labels would not be counted."""
        self.standardisation_ = Standardisation.of(train.features)
        self.targets_ = targets = Targets(train.labels, self.seed, "exact values", train.values)
        frames = LabelledFrames(train, self.standardisation_, targets, self.seed)
        sums = some = None
        if frames.are_many(len(frames)):
            sums, few = frames.sums(), numpy_generator(self.seed, "ratios").permutation(len(frames))[:SOME]
            some = frames.regress(few, targets.groups)
            with Tracker("discriminant probe", len(frames), "frames", self.quiet) as tracker:
                for piece in frames.pieces(frames.all_rows()):
                    sums.add(*piece)
                    tracker.advance(len(piece.z))
        self.regression_ = frames.regress(frames.all_rows(), targets.groups, sums, some)
        self.exact_ = ExactValues(frames, self.regression_)
        kinds = np.array(train.kinds or ["number"] * train.labels.shape[1])
        self.ordinal_, self._dtype = np.flatnonzero(kinds != "class"), train.labels.dtype
        return self

    def predict(self, features: Features) -> Labels:
        """The most likely exact values [n, V]."""
        return self.decode(features)[0]

    def decode(self, features: Features) -> tuple[Labels, NDArray[np.floating[Any]]]:
        """The most likely exact values [n, V], and places and numbers as regressed [n, V], NaN for names."""
        exact = np.zeros((len(features), len(self.exact_.columns)), self._dtype)
        numbers = np.full(exact.shape, np.nan, self.targets_.origin.dtype)
        for start in range(0, len(features), ROWS):
            piece = slice(start, start + ROWS)
            fitted = self.regression_(self.standardisation_(features[piece]))
            limited = self.targets_.in_own_units(self.regression_.limit(fitted))
            numbers[piece, self.ordinal_] = limited[:, self.ordinal_]
            exact[piece] = self.exact_.predict(fitted)
        return exact, numbers
