"""Tables for the terminal, from results of runs that differ only in the seed."""

from collections.abc import Callable, Sequence
from statistics import mean, stdev

from rich.box import SIMPLE_HEAD
from rich.table import Table

from manicap.atari.annotations import CATEGORIES
from manicap.domains.result import RunResult
from manicap.probing.class_result import ClassScores
from manicap.probing.metrics import Scores
from manicap.probing.state_result import StateEvaluation


def state_table(results: Sequence[RunResult]) -> Table:
    """F1 and accuracy of each category over seeds, with the floors and the published numbers."""
    first = results[0]
    evaluation: StateEvaluation = first.evaluation
    seeds = ", ".join(str(result.seed) for result in results)
    title = (
        f"{first.domain.subject_title(first.subject)}, {first.method}: protocol {evaluation.protocol},"
        f" annotations {evaluation.annotation_set}, {evaluation.probe} probe on"
        f" {evaluation.width} features ({first.evaluation_config.probe_input}), seeds {seeds}"
    )
    # Without inner borders it fits a terminal of 80 columns.
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("category", no_wrap=True)
    for name in ("F1", "untrained F1", "majority F1", "accuracy", "untrained accuracy"):
        table.add_column(name, justify="right", min_width=max(map(len, name.split())))
    own = [result.evaluation for result in results]
    for category in sorted(evaluation.categories, key=CATEGORIES.index):
        table.add_row(category.replace("_", " "), *_cells(own, category))
    table.add_section()
    table.add_row("mean over categories", *_cells(own, None), style="bold")
    for name, title in (("converged", "mean, converged probe"), ("supervised", "supervised ({width} features)")):
        if all(name in result.beside for result in results):
            beside = [result.beside[name] for result in results]
            table.add_row(title.format(width=beside[0].width), *_cells(beside, None))
    published = first.published
    if published:
        table.add_section()
    for entry in published:
        f1, accuracy = (_with_deviation(*entry.scores[metric]) for metric in ("f1", "accuracy"))
        table.add_row(f"published: {entry.method}", f1, "", "", accuracy)
    return table


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
    published = first.published
    if published:
        table.add_section()
    for entry in published:
        table.add_row(f"published: {entry.method}", _with_deviation(*entry.scores["accuracy"]))
    return table


def _cells(evaluations: Sequence[StateEvaluation], category: str | None) -> list[str]:
    def over_seeds(metric: str, scores: Sequence[Scores]) -> str:
        found = [each if category is None else each.categories[category] for each in scores]
        return _over_seeds([getattr(each, metric) for each in found])

    own, untrained, majority = (
        [each.scores for each in evaluations],
        [each.floors["untrained"] for each in evaluations],
        [each.floors["majority"] for each in evaluations],
    )
    return [
        over_seeds("f1", own),
        over_seeds("f1", untrained),
        over_seeds("f1", majority),
        over_seeds("accuracy", own),
        over_seeds("accuracy", untrained),
    ]


def _over_seeds(values: Sequence[float]) -> str:
    return _with_deviation(mean(values), stdev(values) if len(values) > 1 else None)


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.3f}" if deviation is None else f"{value:.3f} ± {deviation:.3f}"
