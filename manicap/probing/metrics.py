"""Scores of many variables at once, then means by category and over the categories present."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_BYTES = 256
"""Number of classes of a byte label, seen or not."""

Labels = NDArray[np.integer[Any]]
"""[n, V]: one row per frame, one column per variable; whole numbers from 0, uint8 for RAM bytes."""


def num_classes(*labels: Labels) -> int:
    """Number of classes that labels may have: 256 for bytes, otherwise up to the largest."""
    if all(each.dtype == np.uint8 for each in labels):
        return NUM_BYTES
    return 1 + max(int(each.max(initial=0)) for each in labels)


@dataclass(frozen=True)
class Score:
    """Of one variable, or the mean of several."""

    f1: float
    """Of exact values, weighted by how often they occur."""
    accuracy: float
    macro_f1: float
    """Of exact values, each counted once."""
    r2: float | None = None
    """Share of the variance explained, for places and numbers; None for names."""
    error: float | None = None
    """Mean absolute error in the variable's own units, for places and numbers."""


@dataclass(frozen=True)
class Scores:
    """Scores of a game, of its categories and of its variables."""

    overall: Score
    """Mean over the categories."""
    categories: dict[str, Score]
    """Mean over the category's variables, for the categories that have any."""
    variables: dict[str, Score]

    @property
    def f1(self) -> float:
        return self.overall.f1

    @property
    def accuracy(self) -> float:
        return self.overall.accuracy

    @property
    def metrics(self) -> dict[str, float]:
        """Errors are left out: their units differ."""
        found = {name: getattr(self.overall, name) for name in ("r2", "f1", "accuracy", "macro_f1")}
        return {name: value for name, value in found.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Scores":
        categories = {name: Score(**score) for name, score in values["categories"].items()}
        variables = {name: Score(**score) for name, score in values["variables"].items()}
        return cls(Score(**values["overall"]), categories, variables)


def weighted_f1(true: Labels, predicted: Labels) -> NDArray[np.float64]:
    """F1 of each class weighted by how often it is true, per variable: [V] from labels [n, V].

        F1_c = 2 TP_c / (true_c + predicted_c),    F1 = sum_c true_c F1_c / n

    Equal to scikit-learn's `f1_score(average="weighted")`.
    """
    f1, true_counts, _ = _class_f1(true, predicted)
    return (true_counts * f1).sum(1) / len(true)


def macro_f1(true: Labels, predicted: Labels) -> NDArray[np.float64]:
    """Mean F1 of the classes that are true or predicted somewhere, per variable: `f1_score(average="macro")`."""
    f1, true_counts, predicted_counts = _class_f1(true, predicted)
    return f1.sum(1) / ((true_counts + predicted_counts) > 0).sum(1)


def accuracy(true: Labels, predicted: Labels) -> NDArray[np.float64]:
    """Share of equal labels, per variable: [V] from labels [n, V]."""
    _check(true, predicted)
    return (true == predicted).mean(0)


def explained_variance(true: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """R2 of each column [V]; 0 for one that does not vary, where there is nothing to explain.

    R2 = 1 - sum (true - predicted)^2 / sum (true - mean true)^2
    """
    left = np.square(true - predicted).sum(0)
    total = np.square(true - true.mean(0)).sum(0)
    # The mean of a constant like 0.1 is rounded: it seems to vary by 1e-31, which would divide the error.
    varies = (total > 0) & (np.ptp(true, axis=0) > 0)
    return np.where(varies, 1 - left / np.where(varies, total, 1), 0.0)


def score_labels(
    true: Labels,
    predicted: Labels,
    variables: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    kinds: Mapping[str, str] | None = None,
    numbers: NDArray[np.floating[Any]] | None = None,
    values: NDArray[np.float64] | None = None,
) -> Scores:
    """Scores by variable, by category and over all.

    `categories` gives the variables of each category; a variable may be in two or in none. Names that are not among
    `variables` (dropped for their low entropy) do not count, and a category without any of `variables` is not present.
    Variables whose kind is place or number have R2 and an error too: of `numbers` [n, V], compared with the true
    `values` if labels are not their own, or else of the predicted labels.
    """
    exact = [f(true, predicted).tolist() for f in (weighted_f1, accuracy, macro_f1)]
    read = predicted if numbers is None else numbers
    wanted = (true if numbers is None or values is None else values).astype(np.float64)
    r2 = explained_variance(wanted, read.astype(np.float64))
    errors = np.abs(wanted - read).mean(0)
    by_variable = {}
    for v, name in enumerate(variables):
        ordinal = (kinds or {}).get(name, "class") != "class"
        places = (float(r2[v]), float(errors[v])) if ordinal else (None, None)
        by_variable[name] = Score(*(values[v] for values in exact), *places)
    by_category = {}
    for category, names in categories.items():
        members = [by_variable[name] for name in names if name in by_variable]
        if members:
            by_category[category] = _mean(members)
    if not by_category:
        raise ValueError(f"score_labels requires a variable that is in a category, got {list(variables)}")
    return Scores(_mean(list(by_category.values())), by_category, by_variable)


def _mean(scores: Sequence[Score]) -> Score:
    """Mean of those that have the number."""
    found = {field.name: [getattr(score, field.name) for score in scores] for field in fields(Score)}
    known = {name: [value for value in values if value is not None] for name, values in found.items()}
    return Score(**{name: float(np.mean(values)) if values else None for name, values in known.items()})  # type: ignore[arg-type]


def _class_f1(true: Labels, predicted: Labels) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """F1 of each class and how often it is true and predicted, per variable: [V, K]."""
    _check(true, predicted)
    K = num_classes(true, predicted)
    true_counts, predicted_counts = _count(true, K), _count(predicted, K)
    hits = _count(true, K, true == predicted)
    # A class that is neither true nor predicted has F1 0; only a division by 0 must be avoided.
    return 2 * hits / np.maximum(true_counts + predicted_counts, 1), true_counts, predicted_counts


def _count(labels: Labels, K: int, where: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """How often each of K classes occurs (in the selected entries), per variable: [V, K]."""
    num_variables = labels.shape[1]
    keys = labels.astype(np.int64) + K * np.arange(num_variables)
    counted = keys.ravel() if where is None else keys[where]
    return np.bincount(counted, minlength=num_variables * K).reshape(num_variables, K)


def _check(true: Labels, predicted: Labels) -> None:
    are_whole = all(np.issubdtype(each.dtype, np.integer) and each.min(initial=0) >= 0 for each in (true, predicted))
    if true.ndim != 2 or true.shape != predicted.shape or not len(true) or not are_whole:
        raise ValueError(
            "true and predicted labels must be whole numbers from 0, [n, V] of equal shape with n >= 1,"
            f" got {true.dtype} {true.shape} and {predicted.dtype} {predicted.shape}"
        )
