"""The page's sections as HTML. Every text that comes from outside passes through `escape`."""

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from manicap.report.assets import asset, fill
from manicap.report.contents import TOLERANCE, Chart, RunPage, Score, ScoreRow, VariableScore
from manicap.report.image_contents import ImagePage

CHART_NOTE = "Hover over a curve, or focus it and use the arrow keys, to read its values."
NUM_STYLES = 5
"""Styles of a chart's lines."""
METRICS = {"r2": "R²", "f1": "F1", "accuracy": "Accuracy", "macro_f1": "Macro F1", "error": "Error"}
METRIC_NOTES = {
    "r2": "R² is the share of the variance explained, of places and numbers: 1 is perfect, 0 is what the mean does.",
    "f1": "F1 is of exact values, weighted by how often a value occurs.",
    "accuracy": "Accuracy is the share of test frames whose value is exactly right.",
    "macro_f1": "Macro F1 is of exact values, each counted once, however rare.",
    "error": "The error is the mean distance from the true value, in units of the RAM, of categories with places only.",
}
PRINTED = ("f1", "accuracy")
"""Metrics with published numbers."""


def headline(page: RunPage) -> str:
    """The sentence with the headline number, and the numbers for reference."""
    row = page.overall
    ours = row.ours.f1
    comparisons = [
        _difference(ours, row.untrained, "an untrained network at the same width"),
        _difference(ours, row.majority, "always guessing the most frequent value"),
    ]
    said = ", ".join(text for text in comparisons if text)
    probe = f", {escape(page.probe)} probe" if page.probe else ""
    sentence = f"Mean F1 over categories{probe}: <strong>{number(ours, row.ours.f1_plus_minus)}</strong>"
    stats = [("This run", row.ours, "ours"), ("Untrained, same width", row.untrained, "")]
    stats += [("Most frequent value", row.majority, ""), ("Supervised", row.supervised, "")]
    published = "Published, another probe," if page.published_note else "Published"
    stats += [(f"{published} {item.method}", item.score, "") for item in row.published if item.method == page.method]
    blocks = "".join(
        f'<div class="stat {kind}"><dt>{escape(name)}</dt><dd>{cell(score, "f1")}</dd></div>'
        for name, score, kind in stats
        if score is not None and score.f1 is not None
    )
    return f'<p class="summary">{sentence}{", " + said if said else ""}.</p>\n<dl class="stats">{blocks}</dl>'


def caveat(page: RunPage | ImagePage) -> str:
    if not page.caveat:
        return ""
    return f'<p class="caveat" role="note"><strong>Not the paper’s setting.</strong> {escape(page.caveat)}</p>'


def facts(page: RunPage | ImagePage) -> str:
    if not page.facts:
        return ""
    items = "".join(f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}</dd></div>" for fact in page.facts)
    return section("run", "Run", f'<dl class="facts">{items}</dl>{_commands(page)}')


def _commands(page: RunPage | ImagePage) -> str:
    found = page.commands if isinstance(page, RunPage) else ()
    return "".join(
        f'<p class="command-title">{escape(fact.name)}</p><pre tabindex="0" class="command">{escape(fact.value)}</pre>'
        for fact in found
    )


def scores(page: RunPage) -> str:
    """A table for each metric; without styles all are shown, one below the other."""
    methods = list(dict.fromkeys(item.method for row in (*page.rows, page.overall) for item in row.published))
    metrics = _metrics(page)
    note = f"{escape(page.probe_note)} {_converged_note(page)}"
    tables = "".join(
        f'<div class="panel panel-{key}"><p class="note">{METRIC_NOTES[key]}{_published_note(page, methods, key)}</p>'
        f"{_score_table(page, methods if key in PRINTED else (), key, METRICS[key])}</div>"
        for key in metrics
    )
    choice = "".join(
        f'<input type="radio" name="metric" id="metric-{key}"{" checked" if key == metrics[0] else ""}>'
        f'<label for="metric-{key}">{METRICS[key]}</label>'
        for key in metrics
    )
    body = f'<p class="note">{note}</p><div class="choice" role="group" aria-label="Metric">{choice}</div>{tables}'
    return section("scores", "Scores by category", f'<div class="switch">{body}</div>')


def _metrics(page: RunPage) -> list[str]:
    """F1 and accuracy, and those that a row has; the first is shown first."""
    rows = (*page.rows, page.overall)
    found = [
        key for key in METRICS if key in ("f1", "accuracy") or any(getattr(row.ours, key) is not None for row in rows)
    ]
    return found if page.labels is not None else sorted(found, key=("f1", "accuracy", "macro_f1", "r2", "error").index)


def _published_note(page: RunPage, methods: Sequence[str], key: str) -> str:
    if not methods or key not in PRINTED:
        return ""
    source = f" {escape(page.published_source.rstrip('.'))}." if page.published_source else ""
    return f" Columns under “published” are as printed.{source} {escape(page.published_note)}"


def _converged_note(page: RunPage) -> str:
    if page.converged is None:
        return ""
    return (
        "The protocol's early stopping penalises slow-to-fit features; the converged probe, a logistic regression,"
        " shows what is linearly decodable."
    )


def _score_table(page: RunPage, methods: Sequence[str], key: str, label: str) -> str:
    rows = (*page.rows, page.overall, *([page.converged] if page.converged else []))
    floors = [
        (name, attribute)
        for name, attribute in (("untrained", "untrained"), ("most frequent", "majority"), ("supervised", "supervised"))
        if any(getattr(getattr(row, attribute), key, None) is not None for row in rows)
    ]
    groups = '<th scope="col" rowspan="2">Category</th><th scope="col" rowspan="2" class="ours">This run</th>'
    if floors:
        groups += f'<th scope="colgroup" colspan="{len(floors)}" class="group">for reference</th>'
    if methods:
        title = "published, another probe" if page.published_note else "published"
        groups += f'<th scope="colgroup" colspan="{len(methods)}" class="group">{title}</th>'
    names = "".join(f'<th scope="col"{_first(i)}>{name}</th>' for i, (name, _) in enumerate(floors))
    for i, method in enumerate(methods):
        same = ' <abbr title="the method of this run">★</abbr>' if method == page.method else ""
        names += f'<th scope="col"{_first(i)}>{escape(method)}{same}</th>'
    body = "".join(
        f'<tr{" class=overall" if row is page.overall else ""}><th scope="row">{words(row.name)}</th>'
        f'<td class="ours">{cell(row.ours, key)}</td>'
        + "".join(f"<td{_first(i)}>{cell(getattr(row, name), key)}</td>" for i, (_, name) in enumerate(floors))
        + "".join(f"<td{_first(i)}>{cell(_published(row, method), key)}</td>" for i, method in enumerate(methods))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label} by category"><table class="scores">'
        f"<caption>{label}</caption><thead><tr>{groups}</tr><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def variables(page: RunPage) -> str:
    """Bars of F1 with a mark at each floor and all numbers beside them."""
    if not page.variables:
        return ""
    body = "".join(
        f'<tbody><tr class="category"><th colspan="6" scope="rowgroup">{words(category)}</th></tr>'
        f"{''.join(map(_bar, group))}</tbody>"
        for category, group in groupby(page.variables, key=lambda variable: variable.category)
    )
    legend = (
        '<p class="legend"><span><i class="key-fill"></i>this run</span>'
        '<span><i class="key-mark untrained"></i>untrained, same width</span>'
        '<span><i class="key-mark majority"></i>most frequent value</span></p>'
    )
    head = (
        '<thead><tr><th scope="col">Variable</th><th scope="col" class="track-head"><span>0</span><span>0.5</span>'
        '<span>1</span></th><th scope="col">F1</th><th scope="col">Accuracy</th><th scope="col">Untrained</th>'
        '<th scope="col">Most frequent</th></tr></thead>'
    )
    note = '<p class="note">F1 of each variable, with a mark for each reference.</p>'
    return section("variables", "Scores by variable", f'{note}{legend}<table class="bars">{head}{body}</table>')


def _bar(variable: VariableScore) -> str:
    floors = (("untrained", "Untrained", variable.untrained), ("majority", "Most frequent", variable.majority))
    marks = "".join(
        f'<i class="mark {kind}" style="left:{percent(score.f1)}" title="{name} {number(score.f1)}"></i>'
        for kind, name, score in floors
        if score is not None and score.f1 is not None
    )
    title = f"{variable.name}: F1 {number(variable.ours.f1, variable.ours.f1_plus_minus)}"
    numbers = (
        f'<td class="ours" data-label="F1">{cell(variable.ours, "f1")}</td>'
        f'<td data-label="accuracy">{cell(variable.ours, "accuracy")}</td>'
        f'<td data-label="untrained">{cell(variable.untrained, "f1")}</td>'
        f'<td data-label="most frequent">{cell(variable.majority, "f1")}</td>'
    )
    return (
        f'<tr class="bar"><th scope="row">{escape(variable.name)}</th><td class="track-cell" title="{escape(title)}">'
        f'<span class="track"><span class="fill" style="width:{percent(variable.ours.f1)}"></span>{marks}</span></td>'
        f"{numbers}</tr>"
    )


def charts(page: RunPage | ImagePage) -> str:
    if not page.charts:
        return ""
    first = len(page.all_charts) - len(page.charts) if isinstance(page, RunPage) else 0
    figures = "".join(
        chart_figure(
            first + index, chart, f"<details><summary>Values</summary><pre tabindex='0'>{_csv(chart)}</pre></details>"
        )
        for index, chart in enumerate(page.charts)
    )
    return section("curves", "Training", f'<p class="note">{CHART_NOTE}</p><div class="charts">{figures}</div>')


def chart_figure(index: int, chart: Chart, values: str = "", small: bool = False, legend: bool = True) -> str:
    """Where the page's script draws the chart with this index; `values` is shown below it."""
    return (
        f'<figure class="chart{" small" if small else ""}" data-chart="{index}">'
        f"<figcaption>{escape(chart.title)}</figcaption>{chart_legend(chart) if legend else ''}"
        '<div class="plot" tabindex="0" role="group"'
        f' aria-label="{escape(chart.title)}, curve; arrow keys read values"></div><output class="readout"></output>'
        f"{values}</figure>"
    )


def chart_legend(chart: Chart) -> str:
    keys = "".join(
        f'<span><svg class="key series-{i % NUM_STYLES}" viewBox="0 0 28 8" aria-hidden="true">'
        f'<path d="M1 4H27"/></svg>{escape(series.name)}</span>'
        for i, series in enumerate(chart.series)
    )
    return f'<p class="legend">{keys}</p>'


def doubts(page: RunPage) -> str:
    """What may be wrong with the scores, and what was not scored."""
    warnings = "".join(
        f'<p class="caveat" role="note"><strong>Warning.</strong> {escape(text)}</p>' for text in page.warnings
    )
    items = "".join(f"<li>{escape(text)}</li>" for text in page.left_out)
    body = warnings + (f'<ul class="plain-list">{items}</ul>' if items else "")
    return section("left-out", "Warnings, and what is not scored" if warnings else "Not scored", body) if body else ""


def _csv(chart: Chart) -> str:
    lines = ["series,step,value"]
    for series in chart.series:
        lines += [f"{series.name},{step},{value:.6g}" for step, value in zip(series.steps, series.values, strict=True)]
    return escape("\n".join(lines))


def player(page: RunPage) -> str:
    if page.player is None:
        return ""
    tolerance = ""
    if any(track.tolerance for track in page.player.tracks):
        tolerance = f" A place or a number counts as right within {100 * TOLERANCE:.0f} % of its range."
    body = fill(asset("player.html"), last=str(len(page.player.frames) - 1), tolerance=tolerance)
    return section("player", "Episode player", body)


def number(value: float | None, plus_minus: float | None = None) -> str:
    """`0.66`, `0.66 ± 0.01`, or a dash if unknown."""
    if value is None or not math.isfinite(value):
        return "–"
    spread = f" ± {plus_minus:.2f}" if plus_minus is not None and math.isfinite(plus_minus) else ""
    return f"{round(value, 2) + 0.0:.2f}{spread}".replace("-", "−")  # + 0.0 turns -0.0 into 0.0


def words(name: str) -> str:
    """`small_object_localization` as people write it, escaped."""
    text = name.replace("_", " ")
    return escape(text[:1].upper() + text[1:])


def cell(score: Score | None, key: str) -> str:
    if score is None:
        return "–"
    value, spread = getattr(score, key), getattr(score, f"{key}_plus_minus", None)
    if value is None or not math.isfinite(value):
        return "–"
    small = f' <span class="spread">± {spread:.2f}</span>' if spread is not None and math.isfinite(spread) else ""
    return f"{number(value)}{small}"


def _published(row: ScoreRow, method: str) -> Score | None:
    return next((item.score for item in row.published if item.method == method), None)


def _difference(ours: float | None, floor: Score | None, name: str) -> str:
    if ours is None or floor is None or floor.f1 is None or not math.isfinite(ours - floor.f1):
        return ""
    difference = round(ours, 2) - round(floor.f1, 2)  # of the numbers shown, so that a reader's subtraction agrees
    return f"{abs(difference):.2f} {'above' if difference >= 0 else 'below'} {name}"


def percent(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "0%"
    return f"{100 * min(max(value, 0.0), 1.0):.1f}%"


def _first(index: int) -> str:
    return ' class="first"' if index == 0 else ""


def section(key: str, title: str, body: str) -> str:
    return f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>\n{body}\n</section>'
