"""Ridge regression of many targets at once, its regularization chosen by cross-validation among the given labels.

    minimise over w, b:   mean over frames of (w z + b - y)^2  +  r v ||w||^2

v is the total variance of the standardised features, so a ratio r means the same at every width and for every encoder.
All ratios of a logarithmic grid are solved by Cholesky in float64, from one Gram matrix: over the frames (dual) where
features outnumber them, else over the features (primal). Equal to scikit-learn's `Ridge(alpha=n r v)`.

Targets come in groups that share a ratio: a number is a group of its own, the indicators of a variable's values are one
group. The ratio with the smallest squared error on held-out frames is taken, first among whole decades, then among the
half decades beside the best; then all frames are fitted. A fit that is told the ratios of fewer frames begins with the
half decades beside them if the groups are the same, else with the decades around them, and goes on while the best is
the last one tried. Each fold is held out in turn; of many frames, one fold is enough.

A regression extrapolates without bound where features are far from those it was fitted to, as in a life that looks like
no other. Its predictions are therefore limited to the range of the targets that it has seen (`RidgeFit.limit`).
Cross-validation, and the errors that it finds, are those of free predictions.

Products of many frames are taken in float32, a few thousand frames at a time, and added up in float64. What this rounds
off is less than a hundredth of the smallest penalty of the grid.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.probing.subsets import FOLDS

RATIOS: tuple[float, ...] = tuple(10.0 ** (exponent / 2) for exponent in range(-14, 3))
"""1e-7, 3e-7, ..., 10."""
DECADE = 2
"""Places from one decade to the next."""
FEW = 2000
"""Up to this many frames are fitted at once, more of them from sums over frames; and every fold is held out once."""
MANY = 10_000
"""Up to this many frames every fold is held out once for all targets but those that one fold is enough for: a fold of
2,000 frames holds some fifteen stretches of play, too few to choose the ratio of a place by (docs/probing.md)."""
HELD = 0
"""The fold that is held out of more."""
BLOCK = 1024
"""Features whose products with the later ones are summed at once; those with the earlier ones follow by symmetry."""

Folds = NDArray[np.int64]
Ratios = NDArray[np.float64]
Solutions = Iterator[tuple[Tensor, Tensor]]
Pieces = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""The frames of a fold in pieces: standardised features [n, F] and targets [n, T]."""


class RidgeFit(NamedTuple):
    weights: Tensor
    """float32 [F, T], for standardised features."""
    bias: Tensor
    """float32 [T]"""
    ratios: Ratios
    """[G]: the ratio of each group."""
    errors: NDArray[np.float64]
    """[G]: mean squared error on held-out frames, summed over the group's targets."""
    lowest: Tensor
    highest: Tensor
    """float32 [T]: the range of the targets."""

    @property
    def at_end(self) -> NDArray[np.bool_]:
        """[G]: whether the ratio is the first or the last of the grid, so that a better one may lie beyond."""
        return np.isin(self.ratios, (RATIOS[0], RATIOS[-1]))

    def __call__(self, z: Tensor) -> Tensor:
        """Predictions [n, T]."""
        return torch.addmm(self.bias, z, self.weights)

    def limit(self, predictions: Tensor) -> Tensor:
        """Predictions [n, T] within the range of the targets."""
        return predictions.clamp(self.lowest, self.highest)

    def columns(self, chosen: slice) -> "RidgeFit":
        """Only some targets; ratios and errors stay those of all groups."""
        return self._replace(
            weights=self.weights[:, chosen].contiguous(),
            bias=self.bias[chosen],
            lowest=self.lowest[chosen],
            highest=self.highest[chosen],
        )


def fit_frames(
    z: Tensor,
    y: Tensor,
    groups: Tensor,
    folds: Folds,
    variance: float,
    near: Ratios | None = None,
    single_fold: Tensor | None = None,
) -> RidgeFit:
    """From z float32 [n, F], y [n, T], the group of each target [T] and the fold of each frame [n].

    `near` are ratios to begin with, such as those of fewer frames. `single_fold` [T] says for which targets one fold is
    enough where frames are more than `FEW`; none if omitted.
    """
    exact, targets = z.double(), y.double()
    problem = _Dual(exact, targets) if len(z) < z.shape[1] else _Primal(exact, targets)
    if len(np.unique(folds)) < 2:
        folds = np.arange(len(z)) % FOLDS  # all from one stretch of play
    asked = list(zip(np.unique(folds), _targets_asked(len(z), groups, single_fold), strict=False))

    def errors(ratios: Sequence[float]) -> Tensor:
        found, counts = (torch.zeros(*lead, len(groups), dtype=torch.float64) for lead in ((len(ratios),), ()))
        for fold, columns in asked:
            held, rest = (torch.from_numpy(np.flatnonzero(chosen)) for chosen in (folds == fold, folds != fold))
            solutions = problem.solutions(rest, _penalties(len(rest), variance, ratios), columns)
            for index, solution in enumerate(solutions):
                missed = problem.predict(held, rest, *solution) - targets[held][:, columns]
                found[index, columns] += missed.square().sum(0)
            counts[columns] += len(held)
        return found / counts

    def solve(ratios: Sequence[float]) -> Solutions:
        return problem.weights(_penalties(len(z), variance, ratios))

    return _fit_best(errors, solve, groups, near, y.aminmax(dim=0))


class GrowingRidge:
    """Many frames, which can become more: sums over the frames are kept, and those of the larger subset include them.

    problem.add(z, y, folds)      # the first frames
    problem.fit(groups, pieces)
    problem.add(...)              # further frames
    """

    def __init__(self, num_features: int, num_targets: int, variance: float) -> None:
        self.variance = variance
        self._folds = [_Moments(num_features, num_targets) for _ in range(FOLDS)]
        self._lowest, self._highest = (torch.full((num_targets,), bound) for bound in (torch.inf, -torch.inf))

    def add(self, z: Tensor, y: Tensor, folds: Folds) -> None:
        self._lowest = torch.minimum(self._lowest, y.amin(0))
        self._highest = torch.maximum(self._highest, y.amax(0))
        if self._count + len(z) > MANY:  # one fold is held out from now on; the sums of the others become one
            for _ in self._folds[HELD + 2 :]:
                self._folds[HELD + 1].include(self._folds.pop())
        kept = folds.clip(max=len(self._folds) - 1)
        for fold, moments in enumerate(self._folds):
            chosen = torch.from_numpy(kept == fold)
            moments.add(z[chosen], y[chosen])

    def fit(
        self, groups: Tensor, pieces: Pieces, near: Ratios | None = None, single_fold: Tensor | None = None
    ) -> RidgeFit:
        """Fit the first targets, as many as have a group. `pieces` yields the frames of a fold among those added.

        `near` and `single_fold` as in `fit_frames`.
        """
        num_targets, asked = len(groups), _targets_asked(self._count, groups, single_fold)

        def errors(ratios: Sequence[float]) -> Tensor:
            found, counts = (torch.zeros(*lead, num_targets, dtype=torch.float64) for lead in ((len(ratios),), ()))
            for fold, columns in enumerate(asked, HELD):
                rest = _Moments.total([moments for other, moments in enumerate(self._folds) if other != fold])
                solved = rest.solutions(_penalties(rest.count, self.variance, ratios), columns)
                solutions = [(weights.float(), bias.float()) for weights, bias in solved]
                for z, y in pieces(fold):
                    for index, (weights, bias) in enumerate(solutions):
                        residual = torch.addmm(bias, z, weights) - y[:, columns]
                        found[index, columns] += residual.square_().sum(0, dtype=torch.float64)
                counts[columns] += self._folds[fold].count
            return found / counts

        def solve(ratios: Sequence[float]) -> Solutions:
            penalties = _penalties(self._count, self.variance, ratios)
            return _Moments.total(self._folds).solutions(penalties, torch.arange(num_targets))

        span = (self._lowest[:num_targets], self._highest[:num_targets])
        return _fit_best(errors, solve, groups, near, span)

    def first_features(self, count: int) -> "GrowingRidge":
        """The same frames by their first features."""
        narrow = GrowingRidge(0, 0, 0.0)
        narrow._folds = [moments.first_features(count) for moments in self._folds]
        narrow._lowest, narrow._highest = self._lowest, self._highest
        narrow.variance = float(narrow.covariance().diagonal().sum())
        return narrow

    def covariance(self) -> Tensor:
        """Of all features [F, F]."""
        return _Moments.total(self._folds).scatter() / self._count

    @property
    def _count(self) -> int:
        return sum(moments.count for moments in self._folds)


class _Moments:
    """Sums over frames from which the primal problem is solved.

    Of the products of features only the blocks on and above the diagonal are kept.
    """

    def __init__(self, num_features: int, num_targets: int) -> None:
        F, T = num_features, num_targets
        self.count = 0
        self.sums = tuple(torch.zeros(shape, dtype=torch.float64) for shape in ((F,), (T,), (F, F), (F, T)))

    @classmethod
    def of(cls, z: Tensor, y: Tensor) -> "_Moments":
        found = cls(z.shape[1], y.shape[1])
        found.add(z, y)
        return found

    def add(self, z: Tensor, y: Tensor) -> None:
        """Frames in float32 or float64; their products are taken in the same precision."""
        sum_z, sum_y, zz, zy = self.sums
        self.count += len(z)
        sum_z += z.sum(0, dtype=torch.float64)
        sum_y += y.sum(0, dtype=torch.float64)
        zy += z.T @ y
        for block in _blocks(z.shape[1]):
            zz[block, block.start :] += z[:, block].T @ z[:, block.start :]

    def include(self, other: "_Moments") -> None:
        """The frames of another become frames of this one."""
        self.count += other.count
        for ours, theirs in zip(self.sums, other.sums, strict=True):
            ours += theirs

    @classmethod
    def total(cls, several: Sequence["_Moments"]) -> "_Moments":
        """Of all their frames; of one, itself, because a copy of wide features takes gigabytes."""
        if len(several) == 1:
            return several[0]
        found = cls(0, 0)
        found.count, found.sums = several[0].count, tuple(sums.clone() for sums in several[0].sums)
        for moments in several[1:]:
            found.include(moments)
        return found

    def first_features(self, count: int) -> "_Moments":
        z, y, zz, zy = self.sums
        found = _Moments(0, 0)
        found.count, found.sums = self.count, (z[:count], y, zz[:count, :count], zy[:count])
        return found

    def scatter(self) -> Tensor:
        """Sum of the products of centred features [F, F]."""
        found = torch.addr(self.sums[2], self.sums[0], self.sums[0], alpha=-1 / self.count)
        for block in _blocks(len(found)):
            found[block.stop :, block] = found[block, block.stop :].T
        return found

    def solutions(self, penalties: Iterable[float], columns: Tensor) -> Solutions:
        """Weights [F, T] and bias [T] of some targets for each penalty n r v."""
        z, y, zy = self.sums[0], self.sums[1][columns], self.sums[3][:, columns]
        mean_z, mean_y = z / self.count, y / self.count
        scatter, right = self.scatter(), torch.addr(zy, z, mean_y, alpha=-1)
        diagonal = scatter.diagonal().clone()
        for penalty in penalties:
            scatter.diagonal().copy_(diagonal + penalty)
            weights = torch.cholesky_solve(right, torch.linalg.cholesky(scatter))
            yield weights, mean_y - mean_z @ weights


def _blocks(num_features: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, num_features)) for start in range(0, num_features, BLOCK))


class _Primal:
    """Features against features."""

    def __init__(self, z: Tensor, y: Tensor) -> None:
        self.z, self.y = z, y

    def solutions(self, rest: Tensor, penalties: Iterable[float], columns: Tensor) -> Solutions:
        return _Moments.of(self.z[rest], self.y[rest]).solutions(penalties, columns)

    def predict(self, held: Tensor, rest: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        return self.z[held] @ weights + bias

    def weights(self, penalties: Iterable[float]) -> Solutions:
        return _Moments.of(self.z, self.y).solutions(penalties, torch.arange(self.y.shape[1]))


class _Dual:
    """Frames against frames. The solution is a sum of centred frames, whose coefficients add up to 0."""

    def __init__(self, z: Tensor, y: Tensor) -> None:
        self.z, self.y, self.gram = z, y, z @ z.T

    def solutions(self, rest: Tensor, penalties: Iterable[float], columns: Tensor) -> Solutions:
        """Coefficients [n, T] and the mean [T] of some targets for each penalty."""
        y = self.y[rest][:, columns]
        gram, mean_y = self.gram[rest][:, rest], y.mean(0)
        means = gram.mean(1)
        gram -= means + means[:, None] - means.mean()
        diagonal, right = gram.diagonal().clone(), y - mean_y
        for penalty in penalties:
            gram.diagonal().copy_(diagonal + penalty)
            yield torch.cholesky_solve(right, torch.linalg.cholesky(gram)), mean_y

    def predict(self, held: Tensor, rest: Tensor, coefficients: Tensor, mean_y: Tensor) -> Tensor:
        products = self.gram[:, rest]
        return (products[held] - products[rest].mean(0)) @ coefficients + mean_y

    def weights(self, penalties: Iterable[float]) -> Solutions:
        everything, columns = torch.arange(len(self.z)), torch.arange(self.y.shape[1])
        for coefficients, mean_y in self.solutions(everything, penalties, columns):
            weights = self.z.T @ coefficients
            yield weights, mean_y - self.z.mean(0) @ weights


def _targets_asked(count: int, groups: Tensor, single_fold: Tensor | None) -> list[Tensor]:
    """For each fold that is held out of so many frames, the first one first, the targets predicted there."""
    everything = torch.arange(len(groups))
    if count <= FEW:
        return [everything] * FOLDS
    others = everything if single_fold is None else everything[~single_fold[: len(groups)]]
    return [everything] + [others] * (FOLDS - 1 if count <= MANY and len(others) else 0)


def _penalties(count: int, variance: float, ratios: Sequence[float]) -> Iterator[float]:
    """n r v; without any variance, of which there is nothing to learn, a positive number."""
    return (count * ratio * (variance or 1) for ratio in ratios)


def _fit_best(
    errors: Callable[[Sequence[float]], Tensor],
    solve: Callable[[Sequence[float]], Solutions],
    groups: Tensor,
    near: Ratios | None,
    span: tuple[Tensor, Tensor],
) -> RidgeFit:
    """Solve for the ratio of each group with the smallest error, of equals the largest. Errors are [ratios, T].

    `span` is the lowest and the highest of each target [T].
    """
    by_group = torch.full((len(RATIOS), int(groups.max()) + 1), torch.inf, dtype=torch.float64)
    tried: set[int] = set()
    chosen = torch.empty(0, dtype=torch.int64)

    def measure(indices: set[int]) -> None:
        nonlocal chosen
        untried = sorted((indices & set(range(len(RATIOS)))) - tried)
        if untried:
            found = errors([RATIOS[i] for i in untried])
            by_group[untried] = torch.zeros(len(untried), by_group.shape[1], dtype=found.dtype).index_add_(
                1, groups, found
            )
            tried.update(untried)
        chosen = len(RATIOS) - 1 - by_group.flip(0).argmin(0)

    def beside(step: int) -> set[int]:
        return {index + side for index in chosen.tolist() for side in (-step, step)}

    def walk(step: int) -> None:
        while beside(step) & set(range(len(RATIOS))) - tried:
            measure(beside(step))

    if near is not None and len(near) == by_group.shape[1]:
        measure({place + side for place in _places(near) for side in (-1, 0, 1)})
        walk(1)
    else:
        measure(_decades_around(near))
        walk(DECADE)
        measure(beside(1))
    wanted = sorted(set(chosen.tolist()))
    weights = bias = torch.empty(0)
    for index, (found, offset) in zip(wanted, solve([RATIOS[i] for i in wanted]), strict=True):
        if not len(bias):
            weights, bias = torch.empty(found.shape), torch.empty(offset.shape)
        columns = chosen[groups] == index
        weights[:, columns], bias[columns] = found[:, columns].float(), offset[columns].float()
    return RidgeFit(weights, bias, np.array([RATIOS[i] for i in chosen.tolist()]), by_group.amin(0).numpy(), *span)


def _decades_around(ratios: Ratios | None) -> set[int]:
    """Places of the whole decades next to ratios; of all decades if there are none."""
    if ratios is None:
        return set(range(0, len(RATIOS), DECADE))
    return {place - place % DECADE + step for place in _places(ratios) for step in (-DECADE, 0, DECADE)}


def _places(ratios: Ratios) -> set[int]:
    return {int(np.argmin(np.abs(np.log(RATIOS) - np.log(ratio)))) for ratio in ratios}
