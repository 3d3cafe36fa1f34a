"""The result of an evaluation of classes: accuracies with everything they depend on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from manicap.core.arrays import read_arrays, write_arrays
from manicap.probing.curve_result import CurveEvaluation

Labels = NDArray[np.int64]
CLASS = "class"
"""The only variable of a label curve."""


@dataclass(frozen=True)
class ClassScores:
    accuracy: float
    """Share of test images whose class is the first choice."""
    top5: float | None
    """Share of test images whose class is among the first five choices; None with five classes or fewer."""
    classes: dict[str, float]
    """Accuracy on the images of each class."""

    @property
    def metrics(self) -> dict[str, float]:
        return {"accuracy": self.accuracy} | ({} if self.top5 is None else {"top5": self.top5})

    def to_dict(self) -> dict[str, Any]:
        """What was measured; the inverse of `from_dict`."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ClassScores":
        return cls(**{"top5": None, **values})


@dataclass(frozen=True)
class ClassPredictions:
    """For every test image, its class and the first choice; for some, the nearest training images."""

    true: Labels
    decoded: Labels
    shown: Labels
    """[R]: test images with neighbours."""
    nearest: Labels
    """[R, n]: rows of the training images used, the nearest first."""
    nearest_labels: Labels

    def save(self, path: Path) -> str:
        """Write one .npz file atomically and return its sha256."""
        return write_arrays(path, {each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: Path, sha256: str) -> "ClassPredictions":
        return cls(**read_arrays(path, sha256))


@dataclass(kw_only=True)
class ClassEvaluation(CurveEvaluation):
    """Scores of one encoder on the classes of one dataset, and everything they depend on.

    The scores are those of `probe`. The label curves in `readings` are the weighted F1 of a logistic regression fitted
    to convergence, whatever `probe` is: one that trains for a number of epochs would have to be tuned to each count.
    """

    scores_type: ClassVar[type[Any]] = ClassScores

    @property
    def variables(self) -> tuple[str, ...]:
        return (CLASS,)

    def knowing_nothing(self, variable: str) -> float:
        """The better F1 of two ways to guess: any class alike, and always the most frequent one.

        Guessing each of K classes alike has a weighted F1 of at least 1 / K. If a share a of the images has the most
        frequent class, naming it always has F1 2 a / (1 + a) on these and 0 on the others.
        """
        alike = 1 / len(self.scores.classes)
        if "majority" not in self.floors:
            return alike
        share = self.floors["majority"].accuracy
        return float(max(alike, 2 * share**2 / (1 + share)))

    def __str__(self) -> str:
        lines = [
            f"{self.subject}: protocol {self.protocol}, {self.probe} probe on {self.width} features, seed {self.seed}",
            f"{self.counts['train']:,} training and {self.counts['test']:,} test images",
            "",
        ]
        titles = ["encoder", *sorted(self.floors)]
        columns = [self.scores, *(self.floors[name] for name in titles[1:])]
        rows = [("accuracy", [scores.accuracy for scores in columns])]
        top5 = [scores.top5 for scores in columns if scores.top5 is not None]
        rows += [("top 5", top5)] if len(top5) == len(columns) else []
        rows += [(f"  {name}", [scores.classes[name] for scores in columns]) for name in self.scores.classes]
        first = max(len(name) for name, _ in rows)
        lines.append(" " * first + "".join(f"  {title:>9}" for title in titles))
        lines += [f"{name:<{first}}" + "".join(f"  {value:>9.3f}" for value in values) for name, values in rows]
        return "\n".join([*lines, *_said_of_labels(self)])


def _said_of_labels(evaluation: ClassEvaluation) -> list[str]:
    """A blank line and a line for each floor with label curves."""
    lines = [
        f"labels saved against {floor}: {saved.overall} at {saved.at} labels (F1 of a converged logistic regression)"
        for floor, saved in sorted(evaluation.saved.items())
    ]
    return ["", *lines] if lines else []


def score_classes(scores: NDArray[np.floating[Any]], labels: Labels, class_names: tuple[str, ...]) -> ClassScores:
    """Accuracies from the scores [n, K] of every class; ties go to the lower class."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    hits = order == labels[:, None]
    first = hits[:, 0]
    classes = {name: float(first[labels == c].mean()) for c, name in enumerate(class_names) if (labels == c).any()}
    top5 = float(hits.any(1).mean()) if len(class_names) > 5 else None
    return ClassScores(float(first.mean()), top5, classes)
