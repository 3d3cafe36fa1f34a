"""Weighted F1 and accuracy of many variables at once, then means by category and over the categories present."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
    f1: float
    accuracy: float


@dataclass(frozen=True)
class Scores:
    """Scores of a game, of its categories and of its variables."""

    f1: float
    """Mean over the categories."""
    accuracy: float
    categories: dict[str, Score]
    """Mean over the category's variables, for the categories that have any."""
    variables: dict[str, Score]

    @property
    def metrics(self) -> dict[str, float]:
        return {"f1": self.f1, "accuracy": self.accuracy}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Scores":
        categories = {name: Score(**score) for name, score in values["categories"].items()}
        variables = {name: Score(**score) for name, score in values["variables"].items()}
        return cls(values["f1"], values["accuracy"], categories, variables)


def weighted_f1(true: Labels, predicted: Labels) -> NDArray[np.float64]:
    """F1 of each class weighted by how often it is true, per variable: [V] from labels [n, V].

        F1_c = 2 TP_c / (true_c + predicted_c),    F1 = sum_c true_c F1_c / n

    Equal to scikit-learn's `f1_score(average="weighted")`.
    """
    _check(true, predicted)
    K = num_classes(true, predicted)
    true_counts, predicted_counts = _count(true, K), _count(predicted, K)
    hits = _count(true, K, true == predicted)
    # A class that is neither true nor predicted has weight 0 below; only a division by 0 must be avoided.
    f1 = 2 * hits / np.maximum(true_counts + predicted_counts, 1)
    return (true_counts * f1).sum(1) / len(true)


def accuracy(true: Labels, predicted: Labels) -> NDArray[np.float64]:
    """Share of equal labels, per variable: [V] from labels [n, V]."""
    _check(true, predicted)
    return (true == predicted).mean(0)


def score_labels(
    true: Labels, predicted: Labels, variables: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> Scores:
    """Scores by variable, by category and over all.

    `categories` gives the variables of each category; a variable may be in two or in none. Names that are not among
    `variables` (dropped for their low entropy) do not count, and a category without any of `variables` is not present.
    """
    f1, correct = weighted_f1(true, predicted), accuracy(true, predicted)
    pairs = zip(f1.tolist(), correct.tolist(), strict=True)
    by_variable = {name: Score(*pair) for name, pair in zip(variables, pairs, strict=True)}
    by_category = {}
    for category, names in categories.items():
        members = [by_variable[name] for name in names if name in by_variable]
        if members:
            by_category[category] = _mean(members)
    if not by_category:
        raise ValueError(f"score_labels requires a variable that is in a category, got {list(variables)}")
    overall = _mean(list(by_category.values()))
    return Scores(overall.f1, overall.accuracy, by_category, by_variable)


def _mean(scores: Sequence[Score]) -> Score:
    return Score(
        float(np.mean([score.f1 for score in scores])),
        float(np.mean([score.accuracy for score in scores])),
    )


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
