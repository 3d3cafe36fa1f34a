"""Names (rooms, directions) read by multinomial logistic regression, its l2 chosen among the given labels.

As for `ridge`: every l2 of a logarithmic grid is fitted without a fold, the l2 with the shortest code for the held-out
labels is taken, and then all frames are fitted.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.probing.columns import ClassColumns
from manicap.probing.description import code_bits
from manicap.probing.metrics import Labels, num_classes
from manicap.probing.ridge import HELD, Folds
from manicap.probing.softmax import ROWS, SoftmaxProblem
from manicap.probing.subsets import FOLDS

L2: tuple[float, ...] = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MAX_ITERATIONS = 300
TOLERANCE = 1e-4
"""Largest component of the gradient at which a fit is ended."""
CONVERGED = 5e-4
"""Largest component at which it has converged: L-BFGS in float32 may find no better step before the first."""
SEARCH_ITERATIONS, SEARCH_TOLERANCE = 60, 1e-3
"""The same while an l2 is searched for."""
LEAST_SQUARE = 1e-7
"""Directions in which few frames differ by a smaller share of the largest square are left out."""
FEW_NAMES = 400
"""Up to this many frames every fold is held out once; of more, one fold is enough."""


class NamesFit(NamedTuple):
    columns: ClassColumns
    weights: Tensor
    """float32 [C, R], for rotated features."""
    bias: Tensor
    l2: NDArray[np.float64]
    """[V]"""
    gradient: float
    """Its largest component."""

    @property
    def converged(self) -> bool:
        return self.gradient <= CONVERGED

    @property
    def at_end(self) -> NDArray[np.bool_]:
        """[V]: whether the l2 is the first or the last of the grid."""
        return np.isin(self.l2, (L2[0], L2[-1]))

    def predict(self, rotated: Tensor) -> Labels:
        """The most likely value of each variable [n, V]."""
        pieces = [self.columns.predict(torch.addmm(self.bias, z, self.weights.T)) for z in rotated.split(ROWS)]
        return torch.cat(pieces).numpy()

    def probabilities(self, rotated: Tensor, labels: Labels) -> NDArray[np.float64]:
        """The probability given to the true value [n, V]; 0 for a value that does not occur in training."""
        found = np.zeros(labels.shape)
        for v, classes in enumerate(self.columns.classes):
            rows = self.columns.rows(v)
            log_p = torch.cat([torch.addmm(self.bias[rows], z, self.weights[rows].T) for z in rotated.split(ROWS)])
            places = np.searchsorted(classes, labels[:, v]).clip(max=len(classes) - 1)
            p = log_p.double().softmax(1).gather(1, torch.from_numpy(places)[:, None])[:, 0].numpy()
            found[:, v] = np.where(classes[places] == labels[:, v], p, 0)
        return found


def fit_names(rotated: Tensor, variances: Tensor, labels: Labels, folds: Folds) -> NamesFit:
    """From rotated features float32 [n, R] with variances [R], labels [n, V] and the fold of each frame [n]."""
    if len(labels) < rotated.shape[1]:
        reduced, variances, back = _span(rotated)
        fitted = fit_names(reduced, variances, labels, folds)
        return fitted._replace(weights=fitted.weights @ back.T)
    best = _best_l2(rotated, variances, labels, folds)
    columns = ClassColumns.from_labels(labels, "drop")
    problem = SoftmaxProblem(rotated, variances, labels, columns, best.tolist())
    gradient = problem.minimise(MAX_ITERATIONS, TOLERANCE)
    return NamesFit(columns, problem.weights, problem.bias, best, gradient)


def _span(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Few frames [n, R] in coordinates of the space that they span: [n, m], the variances [m], and the basis [R, m].

    The penalty keeps the weights in that space, so the minimum is the same.
    """
    squares, left = torch.linalg.eigh((features @ features.T).double())
    kept = squares > LEAST_SQUARE * squares[-1].clamp_min(torch.finfo(torch.float64).tiny)
    lengths = squares[kept].sqrt()
    basis = (features.T.double() @ left[:, kept] / lengths).float()
    return (left[:, kept] * lengths).float(), (squares[kept] / len(features)).float(), basis


def _best_l2(rotated: Tensor, variances: Tensor, labels: Labels, folds: Folds) -> NDArray[np.float64]:
    """The l2 of each variable [V]. Every value of the grid and every fold is a variable of its own in one fit."""
    if len(np.unique(folds)) < 2:
        folds = np.arange(len(labels)) % FOLDS
    held = np.unique(folds) if len(labels) <= FEW_NAMES else np.array([folds[0] if HELD not in folds else HELD])
    V = labels.shape[1]
    classes = [np.unique(labels[folds != fold, v]).astype(np.int64) for fold in held for _ in L2 for v in range(V)]
    columns = ClassColumns(classes, [1] * len(classes), torch.from_numpy(labels[:0]).dtype)
    rest = torch.from_numpy((folds[:, None] != held).repeat(len(L2) * V, axis=1)).float()
    # A held-out value may be in no class: its frame has no weight there.
    known = np.minimum(np.tile(labels, len(L2) * len(held)), [found.max() for found in classes])
    l2 = [value for _ in held for value in L2 for _ in range(V)]
    problem = SoftmaxProblem(rotated, variances, known.astype(np.int64), columns, l2, rest / rest.sum(0))
    gradient = problem.minimise(SEARCH_ITERATIONS, SEARCH_TOLERANCE)
    fitted = NamesFit(columns, problem.weights, problem.bias, np.array(l2), gradient)
    codes = np.zeros((len(L2), V))
    for index, fold in enumerate(held):
        rows = np.flatnonzero(folds == fold)
        found = fitted.probabilities(rotated[torch.from_numpy(rows)], np.tile(labels[rows], len(L2) * len(held)))
        bits = code_bits(found, num_classes(labels), len(labels) - len(rows)).sum(0)
        codes += bits.reshape(len(held), len(L2), V)[index]
    return np.asarray(L2)[codes.argmin(0)]  # of equals the largest
