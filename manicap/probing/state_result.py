"""The result of an evaluation of state variables: scores with everything they depend on, as a table and a dict."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from manicap.atari.annotations import CATEGORIES
from manicap.core.arrays import read_arrays, write_arrays
from manicap.domains.evaluation import Evaluation, TargetKind
from manicap.probing.metrics import Labels, Score, Scores


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
    """uint8 [n, V]"""

    def save(self, path: Path) -> str:
        """Write one .npz file atomically and return its sha256."""
        return write_arrays(path, {each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: Path, sha256: str) -> "StatePredictions":
        values: dict[str, Any] = dict(read_arrays(path, sha256))
        return cls(**values | {"variables": tuple(values["variables"].tolist())})


@dataclass(kw_only=True)
class StateEvaluation(Evaluation):
    """Scores of one encoder on the state variables of one game, and everything they depend on."""

    scores_type: ClassVar[type[Any]] = Scores
    probed_alike: ClassVar[tuple[str, ...]] = (*Evaluation.probed_alike, "annotation_set")

    annotation_set: str
    feature_width: int
    """Number of features that the encoder returned; the probe saw fewer if they were projected."""
    steps: int
    """Steps of the probe store."""
    categories: dict[str, tuple[str, ...]]
    """Variables that were scored, by category."""
    kinds: dict[str, TargetKind]
    """What each variable is: a place, a number or a class."""

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
        return super().from_dict({**values, "categories": categories})

    def __str__(self) -> str:
        return _table(self)


def _table(evaluation: StateEvaluation) -> str:
    projected = evaluation.width != evaluation.feature_width
    source = f" projected from {evaluation.feature_width}" if projected else ""
    counts = evaluation.counts
    lines = [
        f"{evaluation.subject}: protocol {evaluation.protocol}, annotations {evaluation.annotation_set},"
        f" {evaluation.probe} probe on {evaluation.width} features{source}, seed {evaluation.seed}",
        f"{counts['frames_train']:,} training, {counts['frames_val']:,} validation and {counts['frames_test']:,}"
        f" test frames of a {evaluation.steps:,}-step store",
        "",
    ]
    # Explicit orders, because JSON with sorted keys does not preserve those of the dicts.
    titles = ["encoder", *sorted(evaluation.floors)]
    columns = [evaluation.scores, *(evaluation.floors[name] for name in titles[1:])]
    rows: list[tuple[str, list[Score]]] = []
    in_categories = {name for found in evaluation.categories.values() for name in found}
    for category in sorted(evaluation.categories, key=CATEGORIES.index):
        names = evaluation.categories[category]
        rows.append((category, [scores.categories[category] for scores in columns]))
        rows += [(f"  {name}", [scores.variables[name] for scores in columns]) for name in names]
    rows += [
        (f"  {name} (in no category)", [scores.variables[name] for scores in columns])
        for name in sorted(set(evaluation.scores.variables) - in_categories)
    ]
    rows.append(("mean over categories", [Score(scores.f1, scores.accuracy) for scores in columns]))
    first = max(len(name) for name, _ in rows)
    widths = [max(len(title), 6) for title in titles]
    half = sum(widths) + 2 * len(widths)

    def line(name: str, f1: list[str], accuracy: list[str]) -> str:
        cells = [
            "".join(f"  {cell:>{size}}" for cell, size in zip(part, widths, strict=True)) for part in (f1, accuracy)
        ]
        return f"{name:<{first}}{cells[0]}   {cells[1]}".rstrip()

    lines.append(f"{'':<{first}}{'F1':>{half}}   {'accuracy':>{half}}")
    lines.append(line("", titles, titles))
    for name, scores in rows:
        lines.append(line(name, [f"{score.f1:.3f}" for score in scores], [f"{score.accuracy:.3f}" for score in scores]))
    return "\n".join(lines)
