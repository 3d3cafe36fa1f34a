"""The default probe: places and numbers read by ridge regression, names by logistic regression, from few labels to all.

    probe = RidgeProbes(seed=0).fit(train, val)         # ProbeData with the kinds of its variables
    probe.predict(test.features)                        # exact values [n, V], by all training labels
    probe.read(test, variables)                         # a Reading: scores by number of labels, by width, ...

Features are standardised by the training frames (`standardisation`), a fit chooses its regularization by
cross-validation among its own labels (`ridge`, `names`), and subsets of labels are nested (`subsets`). So nothing
depends on the scale of features, on the schedule of an optimizer or on labels that are not counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.progress import Tracker
from manicap.core.ranges import Count
from manicap.probing.description import Lattice, code_bits, number_probabilities
from manicap.probing.discriminant import ExactValues
from manicap.probing.feature_cache import Features
from manicap.probing.labelled import LabelledFrames, Targets, Wanted
from manicap.probing.metrics import Labels, explained_variance, num_classes, weighted_f1
from manicap.probing.names import NamesFit, fit_names
from manicap.probing.reading import Reading
from manicap.probing.ridge import GrowingRidge, RidgeFit
from manicap.probing.sampling import ProbeData
from manicap.probing.standardisation import ROWS, Standardisation
from manicap.probing.subsets import DRAWS, SMALLEST, Draw, draw_subsets
from manicap.probing.widths import fit_widths, principal_directions, random_directions

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeConfig:
    """What a result depends on; the grids of regularizations are constants of `ridge` and `names`."""

    smallest: Count = SMALLEST
    draws: Count = DRAWS


class Subset(NamedTuple):
    draw: int
    num_labels: int


class RidgeProbes:
    """Regressions and classifiers of all variables, fitted to every subset of the labels."""

    name = "ridge"

    def __init__(self, seed: int = 0, quiet: bool = True, curves: bool = True) -> None:
        """Without `curves` a probe reads with all labels and all features only, and decodes no exact values."""
        self.config, self.seed, self.quiet, self.curves = RidgeConfig(), seed, quiet, curves

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        """Set `numbers_` and `names_`, a fit for each subset of the labels. `val` is not used."""
        kinds = np.array(train.kinds or ["number"] * train.labels.shape[1])
        self.ordinal_, self.named_ = np.flatnonzero(kinds != "class"), np.flatnonzero(kinds == "class")
        self.standardisation_ = Standardisation.of(train.features)
        numbers = None if train.values is None else train.values[:, self.ordinal_]
        wanted: Wanted = "controls" if self.curves else "numbers"
        self.targets_ = Targets(train.labels[:, self.ordinal_], self.seed, wanted, numbers)
        self.numbers_: dict[Subset, RidgeFit] = {}
        self.names_: dict[Subset, NamesFit] = {}
        self._all_labels, self._dtype = Subset(0, len(train)), train.labels.dtype
        frames = LabelledFrames(train, self.standardisation_, self.targets_, self.seed)
        draws = draw_subsets(len(train), self.seed)
        if not self.curves:
            draws = (Draw(draws[0].order, (len(train),)),)
        total = (bool(len(self.ordinal_)) + bool(len(self.named_))) * sum(len(draw.counts) for draw in draws)
        with Tracker("ridge probe", total, "fits", self.quiet) as tracker:
            problems = [self._fit_numbers(frames, index, draw, tracker) for index, draw in enumerate(draws)]
            self.directions_, variances = principal_directions(frames, problems[0], len(self.named_) > 0, self.seed)
            rotated = self._fit_names(frames, variances, train.labels, draws, tracker)
        if self.curves and len(self.ordinal_):
            self.exact_ = ExactValues(frames, self.numbers_[self._all_labels])
        self.components_: dict[int, RidgeFit] = {}
        self.random_: dict[int, RidgeFit] = {}
        if self.curves and len(self.ordinal_) and frames.width:
            self.components_ = fit_widths(frames, self.directions_, len(self.ordinal_))
            self.random_ = fit_widths(frames, random_directions(frames.width, self.seed), len(self.ordinal_))
        self._describe(frames, rotated, train.labels, draws[0])
        return self

    def predict(self, features: Features) -> Labels:
        """The most likely exact values [n, V]."""
        return self.decode(features)[0]

    def decode(self, features: Features) -> tuple[Labels, NDArray[np.floating[Any]]]:
        """The most likely exact values [n, V], and places and numbers as regressed [n, V], NaN for names."""
        exact = np.zeros((len(features), len(self.ordinal_) + len(self.named_)), self._dtype)
        numbers = np.full(exact.shape, np.nan, self.targets_.origin.dtype)
        for start in range(0, len(features), ROWS):
            piece = slice(start, start + ROWS)
            z = self.standardisation_(features[piece])
            if len(self.ordinal_):
                fit = self.numbers_[self._all_labels]
                fitted = fit(z)
                numbers[piece, self.ordinal_] = self.targets_.in_own_units(fit.limit(fitted))
                exact[piece, self.ordinal_] = self.exact_.predict(fitted)
            if len(self.named_):
                exact[piece, self.named_] = self.names_[self._all_labels].predict(z @ self.directions_)
        return exact, numbers

    def read(self, test: ProbeData, variables: Sequence[str]) -> Reading:
        """Score every fit on the test frames."""
        z = self.standardisation_(test.features)
        own = test.labels if test.values is None else test.values
        true, ordinal = self.targets_.standardised(own[:, self.ordinal_]), len(self.ordinal_)
        scores = {subset: np.zeros(len(variables)) for subset in (*self.numbers_, *self.names_)}
        for subset, numbers in self.numbers_.items():
            scores[subset][self.ordinal_] = _explained(true, numbers.columns(slice(ordinal)), z)
        rotated = z @ self.directions_ if self.names_ else z
        for subset, names in self.names_.items():
            scores[subset][self.named_] = weighted_f1(test.labels[:, self.named_], names.predict(rotated))
        ordinal_names = [variables[v] for v in self.ordinal_.tolist()]
        control = np.zeros(0)
        if self.curves and ordinal:
            fitted = self.numbers_[self._all_labels].columns(self.targets_.controls)
            control = _explained(self.targets_.control(test.labels[:, self.ordinal_]), fitted, z)
        components, random = (
            {k: float(_explained(true, fitted, z).mean()) for k, fitted in found.items()}
            for found in (self.components_, self.random_)
        )
        return Reading(
            counts=tuple(sorted({count for _, count in scores})),
            curves=_curves(scores, variables),
            bits=dict(zip(variables, self.bits_.tolist(), strict=True)),
            plain_bits=self.plain_bits_,
            control=dict(zip(ordinal_names, control.tolist(), strict=self.curves)),
            components=components,
            random=random,
            at_end=tuple(variables[v] for v in self._at_end().tolist()),
            unconverged=sum(not names.converged for names in self.names_.values()),
        )

    def _fit_numbers(self, frames: LabelledFrames, index: int, draw: Draw, tracker: Tracker) -> GrowingRidge | None:
        """Fit the subsets of a draw; with all labels also the controls and the indicators of exact values.

        Returns the sums over all frames, if there are many, and more than features.
        """
        problem, added, fitted = None, 0, None
        for count in draw.counts:
            if frames.are_many(count):
                problem = problem or frames.sums()
                for piece in frames.pieces(draw.order[added:count]):
                    problem.add(*piece)
                added = count
            if not len(self.ordinal_):
                continue
            groups = frames.targets.groups[: None if count == len(frames) else len(self.ordinal_)]
            fitted = frames.regress(draw.order[:count], groups, problem, fitted)
            self.numbers_[Subset(index, count)] = fitted
            tracker.advance()
        return problem

    def _fit_names(
        self, frames: LabelledFrames, variances: Tensor, labels: Labels, draws: Sequence[Draw], tracker: Tracker
    ) -> Tensor:
        """Returns the features along their principal directions [n, R], which names are read from."""
        if not len(self.named_):
            return torch.empty(0)
        rotated = torch.cat([piece.z @ self.directions_ for piece in frames.pieces(frames.all_rows())])
        for index, draw in enumerate(draws):
            for count in draw.counts:
                rows = draw.order[:count]
                chosen = rotated[torch.from_numpy(rows)]
                fitted = fit_names(chosen, variances, labels[rows][:, self.named_], frames.folds[rows])
                self.names_[Subset(index, count)] = fitted
                tracker.advance()
        return rotated

    def _describe(self, frames: LabelledFrames, rotated: Tensor, labels: Labels, draw: Draw) -> None:
        """Set `bits_` [V], and `plain_bits_`: log2 K for every label."""
        lattice, ordinal = Lattice(self.targets_.numbers), len(self.ordinal_)
        num_values = max(num_classes(labels), lattice.size)
        plain = float(np.log2(num_values))
        self.bits_, self.plain_bits_ = np.full(labels.shape[1], plain * draw.counts[0]), plain * len(labels)
        for count, until in zip(draw.counts[:-1], draw.counts[1:], strict=True):
            rows, subset = np.sort(draw.order[count:until]), Subset(0, count)
            if ordinal:
                fit = self.numbers_[subset].columns(slice(ordinal))
                fitted = fit.limit(torch.cat([fit(piece.z) for piece in frames.pieces(rows)]))
                deviation = np.sqrt(fit.errors[:ordinal]) * self.targets_.unit / lattice.unit
                true = lattice(self.targets_.numbers[rows]).round()
                predicted = lattice(self.targets_.in_own_units(fitted).astype(np.float64))
                p = number_probabilities(true, predicted, deviation, num_values)
                self.bits_[self.ordinal_] += code_bits(p, num_values, count).sum(0)
            if len(self.named_):
                p = self.names_[subset].probabilities(rotated[torch.from_numpy(rows)], labels[rows][:, self.named_])
                self.bits_[self.named_] += code_bits(p, num_values, count).sum(0)

    def _at_end(self) -> NDArray[np.int64]:
        """Variables whose regularization, with all labels, lies at an end of its grid."""
        found = []
        if len(self.ordinal_):
            found.append(self.ordinal_[self.numbers_[self._all_labels].at_end[: len(self.ordinal_)]])
        if len(self.named_):
            found.append(self.named_[self.names_[self._all_labels].at_end])
        return np.sort(np.concatenate(found))


def _explained(true: NDArray[np.number], fit: RidgeFit, z: Tensor) -> Floats:
    return explained_variance(true.astype(np.float64), fit.limit(fit(z)).numpy().astype(np.float64))


def _curves(
    scores: Mapping[Subset, Floats], variables: Sequence[str]
) -> dict[str, tuple[tuple[float | None, ...], ...]]:
    """[draws, counts] of each variable."""
    draws, counts = (sorted({subset[i] for subset in scores}) for i in range(2))

    def score(v: int, draw: int, count: int) -> float | None:
        found = scores.get(Subset(draw, count))
        return None if found is None else float(found[v])

    return {
        name: tuple(tuple(score(v, draw, count) for count in counts) for draw in draws)
        for v, name in enumerate(variables)
    }
