"""Tables for the terminal, from results of runs that differ only in the seed."""

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table

from manicap.domains.base import Published
from manicap.domains.result import RunResult
from manicap.play.categories import in_order
from manicap.probing.class_result import ClassScores
from manicap.probing.curve_result import ENCODER, UNTRAINED
from manicap.probing.metrics import Scores
from manicap.probing.saved_words import seeds_sentence, terminal_sentence
from manicap.probing.state_result import StateEvaluation
from manicap.report.class_labels import label_rows, table_notes


class Column(NamedTuple):
    """A metric of the encoder, or of a floor."""

    title: str
    metric: str
    floor: str | None = None


LABEL_COLUMNS = (
    Column("R2", "r2"),
    Column("untrained R2", "r2", "untrained"),
    Column("F1", "f1"),
    Column("untrained F1", "f1", "untrained"),
)
EXACT_COLUMNS = (
    Column("F1", "f1"),
    Column("untrained F1", "f1", "untrained"),
    Column("majority F1", "f1", "majority"),
    Column("accuracy", "accuracy"),
    Column("untrained accuracy", "accuracy", "untrained"),
)
PUBLISHED_NOTE = "Published numbers were measured with the 2019 code's linear probe, not with {probe}."


def state_table(results: Sequence[RunResult]) -> Table:
    """Scores of each category over seeds, with the floors and the published numbers.

    Labels saved, R2 and F1 if there are label curves; otherwise F1 and accuracy.
    """
    first = results[0]
    own: list[StateEvaluation] = [result.evaluation for result in results]
    columns = LABEL_COLUMNS if all(ENCODER in each.readings for each in own) else EXACT_COLUMNS
    # Without inner borders it fits a terminal of 80 columns.
    table = Table(title=_title(results), box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("category", no_wrap=True)
    for column in columns:
        table.add_column(column.title, justify="right", min_width=max(map(len, column.title.split())))

    def add(name: str, cells: Sequence[str], style: str | None = None) -> None:
        narrow = (cell.replace(" ± ", "±") if columns is LABEL_COLUMNS else cell for cell in cells)
        table.add_row(name, *narrow, style=style)

    for category in in_order(own[0].categories):
        add(category.replace("_", " "), _cells(own, category, columns))
    table.add_section()
    add("mean over categories", _cells(own, None, columns), style="bold")
    for name, title in (("converged", "mean, converged probe"), ("supervised", "supervised ({width} features)")):
        if all(name in result.beside for result in results):
            beside = [result.beside[name] for result in results]
            add(title.format(width=beside[0].width), _cells(beside, None, columns))
    if first.published:
        table.add_section()
        table.caption = None if own[0].probe == "linear" else PUBLISHED_NOTE.format(probe=own[0].probe)
    for entry in first.published:
        add(f"published: {entry.method}", [_published_cell(entry, column) for column in columns])
    return table


def _title(results: Sequence[RunResult]) -> str:
    """Labels saved in the first lines, if there are label curves; then how it was measured."""
    first = results[0]
    evaluation: StateEvaluation = first.evaluation
    seeds = ", ".join(str(result.seed) for result in results)
    measured = (
        f"{first.domain.subject_title(first.subject)}, {first.method}: protocol {evaluation.protocol},"
        f" annotations {evaluation.annotation_set}, {evaluation.probe} probe on"
        f" {evaluation.width} features ({first.evaluation_config.probe_input}), seeds {seeds}"
    )
    saved = [result.evaluation.saved for result in results]
    if not all(UNTRAINED in found for found in saved):
        return measured
    floors = [found[UNTRAINED] for found in saved]
    if len(floors) > 1:
        return f"{seeds_sentence(floors, UNTRAINED)}\n{measured}"
    num_draws = len(next(iter(evaluation.readings[ENCODER].curves.values())))
    return f"{terminal_sentence(floors[0], UNTRAINED, num_draws)}\n{measured}"


def _published_cell(entry: Published, column: Column) -> str:
    printed = column.floor is None and column.metric in entry.scores
    return _with_deviation(*entry.scores[column.metric]) if printed else ""


def class_table(results: Sequence[RunResult]) -> Table:
    """Accuracy over seeds, overall and by class, with the floors and the published numbers."""
    first = results[0]
    evaluation = first.evaluation
    seeds = ", ".join(str(result.seed) for result in results)
    table = Table(
        title=f"{first.subject}, {first.method}: protocol {evaluation.protocol}, {evaluation.probe} probe"
        f" on {evaluation.width} features, {evaluation.counts['train']:,} training images, seeds {seeds}"
    )
    table.add_column("test images")
    for name in ("accuracy", "untrained", "majority"):
        table.add_column(name, justify="right")

    def row(name: str, value: Callable[[ClassScores], float], style: str | None = None) -> None:
        found = [
            (r.evaluation.scores, r.evaluation.floors["untrained"], r.evaluation.floors["majority"]) for r in results
        ]
        table.add_row(
            name,
            *(_over_seeds([value(scores) for scores in column]) for column in zip(*found, strict=True)),
            style=style,
        )

    for name in evaluation.scores.classes:
        row(name, lambda scores, name=name: scores.classes[name])  # type: ignore[misc]
    table.add_section()
    row("all", lambda scores: scores.accuracy, style="bold")
    if all(result.evaluation.scores.top5 is not None for result in results):
        row("all, top-5", lambda scores: scores.top5 or 0.0)
    evaluations = [result.evaluation for result in results]
    table.add_section()
    for name, columns in label_rows(evaluations):
        table.add_row(name, *map(_over_seeds, columns))
    published = first.published
    table.caption = table_notes(evaluations, bool(published))
    if published:
        table.add_section()
    for entry in published:
        table.add_row(f"published: {entry.method}", _with_deviation(*entry.scores["accuracy"]))
    return table


def _cells(evaluations: Sequence[StateEvaluation], category: str | None, columns: Sequence[Column]) -> list[str]:
    def values(column: Column) -> list[float | None]:
        scores: list[Scores] = [
            each.scores if column.floor is None else each.floors[column.floor] for each in evaluations
        ]
        found = [each.overall if category is None else each.categories[category] for each in scores]
        return [getattr(each, column.metric) for each in found]

    return [_over_known_seeds(values(column)) for column in columns]


def _over_known_seeds(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _over_seeds(known) if known and len(known) == len(values) else "-"


def _over_seeds(values: Sequence[float]) -> str:
    return _with_deviation(mean(values), stdev(values) if len(values) > 1 else None)


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.3f}" if deviation is None else f"{value:.3f} ± {deviation:.3f}"
