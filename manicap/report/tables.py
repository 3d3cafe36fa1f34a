"""Tables for the terminal, from result files."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from manicap.atari.annotations import CATEGORIES
from manicap.atari.games import find_game
from manicap.bench.published import published_image_accuracy, published_scores


def job_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """F1 and accuracy a category over seeds, with the floors and the published numbers."""
    first = results[0]
    evaluation = first["evaluation"]
    seeds = ", ".join(str(result["seed"]) for result in results)
    title = (
        f"{find_game(first['game']).title}, {first['method']}: protocol {evaluation['protocol']},"
        f" annotations {evaluation['annotation_set']}, {evaluation['probe']} probe on"
        f" {evaluation['width']} features ({first['evaluation_config']['probe_input']}), seeds {seeds}"
    )
    # Without inner borders, a terminal of 80 columns holds it.
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("category", no_wrap=True)
    for name in ("F1", "untrained F1", "majority F1", "accuracy", "untrained accuracy"):
        table.add_column(name, justify="right", min_width=max(map(len, name.split())))
    for category in sorted(evaluation["categories"], key=CATEGORIES.index):
        table.add_row(category.replace("_", " "), *_cells(results, category))
    table.add_section()
    table.add_row("mean over categories", *_cells(results, None), style="bold")
    if all("converged" in result for result in results):
        table.add_row("mean, converged probe", *_cells(results, None, "converged"))
    if all("supervised" in result for result in results):
        table.add_row(f"supervised ({first['supervised']['width']} features)", *_cells(results, None, "supervised"))
    published = published_scores(first["game"])
    if published:
        table.add_section()
        for entry in published:
            f1 = _with_deviation(entry.f1, entry.f1_std)
            table.add_row(f"published: {entry.method}", f1, "", "", _with_deviation(entry.accuracy, entry.accuracy_std))
    return table


def image_job_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Accuracy over seeds, whole and by class, with the floors and the published numbers."""
    first = results[0]
    evaluation = first["evaluation"]
    seeds = ", ".join(str(result["seed"]) for result in results)
    table = Table(
        title=f"{first['dataset']}, {first['method']}: protocol {evaluation['protocol']}, {evaluation['probe']} probe"
        f" on {evaluation['width']} features, {evaluation['counts']['train']:,} training images, seeds {seeds}"
    )
    table.add_column("test images")
    for name in ("accuracy", "untrained", "majority"):
        table.add_column(name, justify="right")

    def row(name: str, *path: str, style: str | None = None) -> None:
        sources = ("scores",), ("floors", "untrained"), ("floors", "majority")
        table.add_row(name, *(_over_seeds(results, *source, *path) for source in sources), style=style)

    for name in evaluation["scores"]["classes"]:
        row(name, "classes", name)
    table.add_section()
    row("all", "accuracy", style="bold")
    if all("top5" in result["evaluation"]["scores"] for result in results):
        row("all, among the first five", "top5")
    published = published_image_accuracy(first["dataset"])
    if published:
        table.add_section()
    for method, accuracy in published.items():
        table.add_row(f"published: {method}", f"{accuracy:.3f}")
    return table


def _over_seeds(results: Sequence[Mapping[str, Any]], *path: str) -> str:
    values = []
    for result in results:
        value: Any = result["evaluation"]
        for key in path:
            value = value[key]
        values.append(value)
    return _with_deviation(mean(values), stdev(values) if len(values) > 1 else None)


def _cells(results: Sequence[Mapping[str, Any]], category: str | None, source: str = "evaluation") -> list[str]:
    def over_seeds(metric: str, *path: str) -> str:
        values = []
        for result in results:
            scores: Any = result[source]
            for key in path:
                scores = scores[key]
            values.append((scores if category is None else scores["categories"][category])[metric])
        return _with_deviation(mean(values), stdev(values) if len(values) > 1 else None)

    return [
        over_seeds("f1", "scores"),
        over_seeds("f1", "floors", "untrained"),
        over_seeds("f1", "floors", "majority"),
        over_seeds("accuracy", "scores"),
        over_seeds("accuracy", "floors", "untrained"),
    ]


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.3f}" if deviation is None else f"{value:.3f} ± {deviation:.3f}"
