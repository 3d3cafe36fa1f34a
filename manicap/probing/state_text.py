"""An evaluation of state variables as text: what `print(evaluation)` shows."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from manicap.play.categories import in_order
from manicap.probing.curve_result import ENCODER, UNTRAINED
from manicap.probing.discriminant_probes import DiscriminantProbes
from manicap.probing.metrics import Score, Scores
from manicap.probing.saved_words import interval_words, overall_words, terminal_sentence, unread_sentence

if TYPE_CHECKING:  # whose text it is
    from manicap.probing.state_result import StateEvaluation

COLUMNS = 80
"""Width of a terminal."""
Rows = list[tuple[str, list[Score]]]


def state_text(evaluation: "StateEvaluation") -> str:
    """Labels saved and R2 first, if there are label curves; otherwise the scores of the encoder and its floors."""
    if ENCODER in evaluation.readings:
        return "\n".join((*_label_lines(evaluation), "", *_read_table(evaluation), "", *_floor_table(evaluation)))
    return "\n".join((_title(evaluation), _frames(evaluation), "", *_exact_table(evaluation)))


def _title(evaluation: "StateEvaluation") -> str:
    projected = evaluation.width != evaluation.feature_width
    source = f" projected from {evaluation.feature_width}" if projected else ""
    return (
        f"{evaluation.subject}: protocol {evaluation.protocol}, annotations {evaluation.annotation_set},"
        f" {evaluation.probe} probe on {evaluation.width} features{source}, seed {evaluation.seed}"
    )


def _frames(evaluation: "StateEvaluation") -> str:
    counts = evaluation.counts
    seen = "" if evaluation.view == "gray" else f", seen as {evaluation.view}"
    return (
        f"{counts['frames_train']:,} training, {counts['frames_val']:,} validation and {counts['frames_test']:,}"
        f" test frames of a {evaluation.steps:,}-step store{seen}"
    )


def _rows(evaluation: "StateEvaluation", columns: Sequence[Scores]) -> Rows:
    """Each category and its variables, those in no category, and the mean."""
    rows: Rows = []
    in_categories = {name for found in evaluation.categories.values() for name in found}
    # Explicit orders, because JSON with sorted keys does not preserve those of the dicts.
    for category in in_order(evaluation.categories):
        names = evaluation.categories[category]
        rows.append((category, [scores.categories[category] for scores in columns]))
        rows += [(f"  {name}", [scores.variables[name] for scores in columns]) for name in names]
    rows += [
        (f"  {name} (in no category)", [scores.variables[name] for scores in columns])
        for name in sorted(set(evaluation.scores.variables) - in_categories)
    ]
    return [*rows, ("mean over categories", [scores.overall for scores in columns])]


def _exact_table(evaluation: "StateEvaluation") -> list[str]:
    titles = ["encoder", *sorted(evaluation.floors)]
    columns = [evaluation.scores, *(evaluation.floors[name] for name in titles[1:])]
    regresses = evaluation.probe == DiscriminantProbes.name
    metrics = {"R2": "r2", "F1": "f1"} if regresses else {"F1": "f1", "accuracy": "accuracy"}
    return _table(_rows(evaluation, columns), titles, metrics)


def _read_table(evaluation: "StateEvaluation") -> list[str]:
    titles, columns = ["encoder"], [evaluation.scores]
    if UNTRAINED in evaluation.floors:
        titles, columns = [*titles, UNTRAINED], [*columns, evaluation.floors[UNTRAINED]]
    return _table(_rows(evaluation, columns), titles, {"R2": "r2", "F1": "f1"})


def _table(rows: Rows, titles: list[str], metrics: dict[str, str]) -> list[str]:
    """The titles under the name of each metric."""
    first = max(len(name) for name, _ in rows)
    widths = [max(len(title), 6) for title in titles]
    part = sum(widths) + 2 * len(widths)

    def line(name: str, parts: Sequence[Sequence[str]]) -> str:
        cells = ("".join(f"  {cell:>{size}}" for cell, size in zip(found, widths, strict=True)) for found in parts)
        return f"{name:<{first}}{'   '.join(cells)}".rstrip()

    head = f"{'':<{first}}{'   '.join(f'{metric:>{part}}' for metric in metrics)}"
    found = [head, line("", [titles] * len(metrics))]
    for name, scores in rows:
        found.append(line(name, [[_number(getattr(score, key)) for score in scores] for key in metrics.values()]))
    return found


def _label_lines(evaluation: "StateEvaluation") -> list[str]:
    """Labels saved against the untrained network, or another floor if that was not probed."""
    found, texts = evaluation.saved, []
    if found:
        floor = UNTRAINED if UNTRAINED in found else min(found)
        num_draws = len(next(iter(evaluation.readings[ENCODER].curves.values())))
        texts += [terminal_sentence(found[floor], floor, num_draws), unread_sentence(found[floor])]
    texts += [_title(evaluation), _frames(evaluation)]
    return [fill(text, COLUMNS) for text in texts if text]


def _floor_table(evaluation: "StateEvaluation") -> list[str]:
    """Labels saved against each floor, with its scores."""
    saved = evaluation.saved
    rows = [("compared with", "labels saved", "95 % interval", "R2", "F1")]
    for name in sorted(evaluation.floors, key=lambda name: (name != UNTRAINED, name)):
        overall, found = evaluation.floors[name].overall, saved.get(name)
        factor, interval = ("-", "") if found is None else (overall_words(found), interval_words(found.overall))
        # R2 compares with the mean; of the most frequent value it says nothing.
        r2 = "-" if name == "majority" else _number(overall.r2)
        rows.append((name, factor, interval or "-", r2, _number(overall.f1)))
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        f"{row[0]:<{widths[0]}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
