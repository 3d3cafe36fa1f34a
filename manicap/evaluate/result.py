"""What an evaluation leaves: scores with everything they depend on, as a table, a dict and JSON. No torch here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.atari.annotations import CATEGORIES
from manicap.core.arrays import read_arrays, write_arrays
from manicap.core.errors import UserError
from manicap.evaluate.metrics import Labels, Score, Scores

FORMAT = 1


@dataclass(frozen=True)
class Predictions:
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
        """One .npz file, written atomically; its sha256."""
        return write_arrays(path, {each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: Path, sha256: str) -> "Predictions":
        values: dict[str, Any] = dict(read_arrays(path, sha256))
        return cls(**values | {"variables": tuple(values["variables"].tolist())})


@dataclass
class Evaluation:
    """Scores of one encoder on one game, and all that they depend on."""

    game: str
    protocol: str
    annotation_set: str
    probe: str
    probe_options: dict[str, Any]
    width: int
    """Features that the probe saw."""
    feature_width: int
    """Features that the encoder gave; the probe saw fewer if they were projected."""
    seed: int
    steps: int
    """Steps of the probe store."""
    store: str
    """Fingerprint of the probe store."""
    encoder: str | None
    """Fingerprint of the encoder; None if it is a function that was given none."""
    threads: int
    counts: dict[str, int]
    """What the splits hold and what was dropped."""
    categories: dict[str, tuple[str, ...]]
    """Variables that were scored, by category."""
    scores: Scores
    seconds: dict[str, float]
    floors: dict[str, Scores] = field(default_factory=dict)
    predictions: Predictions | None = field(default=None, repr=False, compare=False)
    """On the test frames; not in the dict."""

    @property
    def f1(self) -> float:
        """Mean over the categories present."""
        return self.scores.f1

    @property
    def accuracy(self) -> float:
        return self.scores.accuracy

    def add_floor(self, name: str, other: "Evaluation | Scores") -> None:
        """Show `other` beside the scores: an untrained encoder, a supervised one. It must have been probed alike."""
        if isinstance(other, Evaluation):
            asked = ("protocol", "annotation_set", "probe", "probe_options", "store", "seed")
            different = [key for key in asked if getattr(self, key) != getattr(other, key)]
            if different:
                raise UserError(f"the floor {name!r} was measured with another {' and another '.join(different)}")
            if self.width != other.width:
                name = f"{name} ({other.width})"  # the number of features, which is not this evaluation's
        self.floors[name] = other.scores if isinstance(other, Evaluation) else other

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` undoes it."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "predictions"}
        return plain | {
            "format": FORMAT,
            "categories": {name: list(found) for name, found in self.categories.items()},
            "scores": self.scores.to_dict(),
            "floors": {name: scores.to_dict() for name, scores in self.floors.items()},
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, sort_keys=True)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Evaluation":
        if values.get("format") != FORMAT:
            raise UserError(f"an evaluation of format {values.get('format')} was given, this version reads {FORMAT}")
        known = {each.name for each in fields(cls)}
        plain = {key: value for key, value in values.items() if key in known}
        plain["categories"] = {name: tuple(found) for name, found in values["categories"].items()}
        plain["scores"] = Scores.from_dict(values["scores"])
        plain["floors"] = {name: Scores.from_dict(scores) for name, scores in values["floors"].items()}
        return cls(**plain)

    def __str__(self) -> str:
        return _table(self)


def _table(evaluation: Evaluation) -> str:
    projected = evaluation.width != evaluation.feature_width
    source = f" projected from {evaluation.feature_width}" if projected else ""
    counts = evaluation.counts
    lines = [
        f"{evaluation.game}: protocol {evaluation.protocol}, annotations {evaluation.annotation_set},"
        f" {evaluation.probe} probe on {evaluation.width} features{source}, seed {evaluation.seed}",
        f"{counts['frames_train']:,} training, {counts['frames_val']:,} validation and {counts['frames_test']:,}"
        f" test frames of a {evaluation.steps:,}-step store",
        "",
    ]
    # Orders of their own, because JSON with sorted keys does not keep that of the dicts.
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
