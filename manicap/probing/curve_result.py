"""An evaluation with label curves: the same probe fitted to few labels and to all, on the encoder and on its floors."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from manicap.domains.evaluation import Evaluation
from manicap.domains.evaluation import Scores as AnyScores
from manicap.probing.labels_saved import LabelsSaved, labels_saved
from manicap.probing.reading import Reading

ENCODER, UNTRAINED = "encoder", "untrained"
"""Names of readings: the encoder's own, and its network as initialised."""


@dataclass(kw_only=True)
class CurveEvaluation(Evaluation, ABC):
    """What state variables and classes have in common: readings, and the labels that they save."""

    readings: dict[str, Reading] = field(default_factory=dict)
    """Label curves and more of the encoder (`ENCODER`) and of each floor; empty for a probe without them."""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The variables that count, once each."""

    @abstractmethod
    def knowing_nothing(self, variable: str) -> float:
        """The score on a label curve that takes no features."""

    def add_floor(self, name: str, other: "Evaluation | AnyScores") -> None:
        super().add_floor(name, other)
        if isinstance(other, CurveEvaluation) and ENCODER in other.readings:
            shown = [key for key, scores in self.floors.items() if scores is other.scores]
            self.readings |= dict.fromkeys(shown, other.readings[ENCODER])

    @property
    def saved(self) -> dict[str, LabelsSaved]:
        """Labels saved against each floor that has label curves."""
        if ENCODER not in self.readings:
            return {}
        names, own = self.variables, self.readings[ENCODER]
        chance = np.array([self.knowing_nothing(name) for name in names])
        return {
            floor: labels_saved(own.counts, own.scores(names), other.scores(names), chance, names)
            for floor, other in self.readings.items()
            if floor != ENCODER
        }

    @property
    def metrics(self) -> dict[str, float]:
        found = dict(self.scores.metrics)
        saved = self.saved
        if UNTRAINED in saved:
            found = {"labels_saved": saved[UNTRAINED].overall.factor, **found}
        return found

    @property
    def bounds(self) -> dict[str, str]:
        """Labels saved, if the floor's curve ends early."""
        saved = self.saved.get(UNTRAINED)
        return {"labels_saved": saved.overall.bound} if saved is not None and saved.overall.bound else {}

    @property
    def label_curves(self) -> dict[str, dict[int, float]]:
        """Means over draws and variables. What is worse than knowing nothing counts as 0: one variable whose R2 is far
        below would hide all others."""
        found = {}
        for name, reading in self.readings.items():
            scores = np.nanmean(reading.scores(self.variables), 0).clip(min=0).mean(1)
            found[name] = dict(zip(reading.counts, scores.tolist(), strict=True))
        return found

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"readings": {name: each.to_dict() for name, each in self.readings.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        readings = {name: Reading.from_dict(found) for name, found in values.get("readings", {}).items()}
        return super().from_dict({**values, "readings": readings})
