"""The result of an evaluation of state variables: scores with everything they depend on, as a table and a dict."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from manicap.core.arrays import read_arrays, write_arrays
from manicap.domains.evaluation import Evaluation, TargetKind
from manicap.play.categories import in_order
from manicap.probing.curve_result import ENCODER, UNTRAINED, CurveEvaluation
from manicap.probing.metrics import Labels, Scores
from manicap.probing.state_text import state_text

__all__ = ["ENCODER", "UNTRAINED", "StateEvaluation", "StatePredictions"]


@dataclass(frozen=True)
class StatePredictions:
    """True and decoded labels of every test frame, in the order of the store's rows."""

    variables: tuple[str, ...]
    rows: NDArray[np.int64]
    """[n]: rows of the store."""
    episodes: NDArray[np.int64]
    """[n]: index into the store's episodes."""
    true: Labels
    """uint8 [n, V]"""
    decoded: Labels
    """uint8 [n, V]: exact values."""
    numbers: NDArray[np.floating[Any]] | None = None
    """[n, V]: places and numbers as regressed, NaN for names; None for a probe that does not regress."""
    values: NDArray[np.float64] | None = None
    """[n, V]: true places and numbers in their own units; None if the labels are."""

    @property
    def true_shown(self) -> NDArray[Any]:
        """True values in their own units, if they were regressed."""
        return self.true if self.numbers is None or self.values is None else self.values

    @property
    def shown(self) -> NDArray[Any]:
        """What to show beside them: regressed numbers where there are any, rounded if whole ones are true."""
        if self.numbers is None:
            return self.decoded
        if self.values is not None:
            whole = (self.values == self.values.round()).all(0)
            return np.where(np.isnan(self.numbers), self.decoded, np.where(whole, self.numbers.round(), self.numbers))
        largest = np.iinfo(self.decoded.dtype).max
        rounded = np.nan_to_num(self.numbers).round().clip(0, largest).astype(self.decoded.dtype)
        return np.where(np.isnan(self.numbers), self.decoded, rounded)

    def save(self, path: Path) -> str:
        """Write one .npz file atomically and return its sha256."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return write_arrays(path, {name: value for name, value in found.items() if value is not None})

    @classmethod
    def load(cls, path: Path, sha256: str) -> "StatePredictions":
        values: dict[str, Any] = dict(read_arrays(path, sha256))
        return cls(**values | {"variables": tuple(values["variables"].tolist())})


@dataclass(kw_only=True)
class StateEvaluation(CurveEvaluation):
    """Scores of one encoder on the state variables of one game, and everything they depend on."""

    scores_type: ClassVar[type[Any]] = Scores
    probed_alike: ClassVar[tuple[str, ...]] = (*Evaluation.probed_alike, "annotation_set")

    annotation_set: str
    feature_width: int
    """Number of features that the encoder returned; the probe saw fewer if they were projected."""
    steps: int
    """Steps of the probe store."""
    view: str = "gray"
    """What the encoder saw of a step: `gray`, or `colour, 4 frames, 84 x 84`."""
    categories: dict[str, tuple[str, ...]]
    """Variables that were scored, by category."""
    kinds: dict[str, TargetKind]
    """What each variable is: a place, a number or a class (a name)."""
    unseen: dict[str, float]
    """The share of test frames whose value never occurs in training, per variable."""
    dropped: tuple[str, ...] = ()
    """Variables that are not scored, because they hardly vary."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that count, once each, in the order of the categories."""
        found = (name for category in in_order(self.categories) for name in self.categories[category])
        return tuple(dict.fromkeys(found))

    def knowing_nothing(self, variable: str) -> float:
        """The score of the mean, or of the most frequent value."""
        if self.kinds[variable] != "class" or "majority" not in self.floors:
            return 0.0
        return float(self.floors["majority"].variables[variable].f1)

    @property
    def game(self) -> str:
        return self.subject

    @property
    def f1(self) -> float:
        """Mean over the categories present."""
        return float(self.scores.f1)

    @property
    def accuracy(self) -> float:
        return float(self.scores.accuracy)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        categories = {name: tuple(found) for name, found in values["categories"].items()}
        return super().from_dict({**values, "categories": categories, "dropped": tuple(values["dropped"])})

    def __str__(self) -> str:
        return state_text(self)
