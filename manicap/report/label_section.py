"""The page's sections on labels: how many are saved, label curves, scores of variables, and where the state is found.

Every text that comes from outside passes through `escape`.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from manicap.report.contents import Chart, LabelReading, RunPage, Score, Series, VariableScore
from manicap.report.sections import CHART_NOTE, chart_figure, chart_legend, number, percent, section, words


def label_headline(page: RunPage, reading: LabelReading) -> str:
    """Labels saved, then the scores with all labels."""
    before, strong, after = map(escape, reading.sentence)
    ours, untrained = page.overall.ours, page.overall.untrained or Score()
    stats = [("R², all labels", ours.r2, "ours"), ("R², untrained network", untrained.r2, "")]
    stats += [("F1 of exact values", ours.f1, "ours"), ("F1, untrained network", untrained.f1, "")]
    blocks = "".join(
        f'<div class="stat {kind}"><dt>{name}</dt><dd>{number(value)}</dd></div>'
        for name, value, kind in stats
        if value is not None
    )
    if reading.saved:
        factor = escape(reading.saved[0].factor)
        blocks = f'<div class="stat ours in-words"><dt>Labels saved</dt><dd>{factor}</dd></div>{blocks}'
    probe = f"Measured with the {page.probe} probe. " if page.probe else ""
    note = f"{probe}The untrained network is the same network with its initial weights. {reading.note}"
    return (
        f'<p class="summary">{before}<strong class="headline">{strong}</strong>{after}</p>\n'
        f'<p class="note below">{escape(note)}</p>'
        f'<dl class="stats">{blocks}</dl>'
    )


def label_curves(reading: LabelReading) -> str:
    """The mean curve of the run and its floors, then a small one per variable; all values are in tables too."""
    note = (
        "The same probe, fitted to ever more labelled frames. R² is the share of a variable’s variance that is"
        " explained on test frames (F1 for names). Lines are means over variables and draws of the labels, bands are"
        f" the range of the draws. {CHART_NOTE}"
    )
    meaning = (
        f"Labels saved: how many times as many labels the same probe needs on other features for the score that it has"
        f" here with {reading.num_labels:,}; the geometric mean over variables. Below 1 x this run needs more labels."
    )
    main = chart_figure(0, reading.curve, f"<details><summary>Values</summary>{curve_table(reading.curve)}</details>")
    scriptless = '<noscript><p class="note">Curves need JavaScript; their values are in tables below.</p></noscript>'
    body = f'<p class="note">{note}</p>{scriptless}<div class="wide">{main}</div>'
    if reading.saved:
        body += f'<p class="note above">{meaning}</p>{_saved_table(reading)}'
    if reading.variables:
        small = "".join(
            chart_figure(1 + index, chart, small=True, legend=False) for index, chart in enumerate(reading.variables)
        )
        body += (
            f'<h3>By variable</h3>{chart_legend(reading.variables[0])}<div class="small-charts">{small}</div>'
            f"<details><summary>Values</summary>{_variable_curves(reading.variables)}</details>"
        )
    return section("labels", "Labels and scores", body)


def _saved_table(reading: LabelReading) -> str:
    rows = (
        [escape(row.floor), escape(row.factor), escape(row.interval) or "–", escape(row.labels)]
        for row in reading.saved
    )
    heads = ("Compared with", "Labels saved", "95 % interval", f"{reading.num_labels:,} labels here are worth")
    return table("Labels saved", heads, rows, highlighted=1)


def curve_table(chart: Chart) -> str:
    counts = sorted({step for series in chart.series for step in series.steps})
    rows = ([f"{count:,}", *(_at(series, count) for series in chart.series)] for count in counts)
    return table(chart.title, (words(chart.x_label), *(escape(series.name) for series in chart.series)), rows)


def _variable_curves(charts: Sequence[Chart]) -> str:
    counts = sorted({step for chart in charts for series in chart.series for step in series.steps})
    rows = (
        [f"{escape(chart.title)}, {escape(series.name)}", *(_at(series, count, band=False) for count in counts)]
        for chart in charts
        for series in chart.series
    )
    return table("Scores by number of labels", ("Variable", *(f"{count:,}" for count in counts)), rows)


def _at(series: Series, step: int, band: bool = True) -> str:
    """`0.51 (0.48 to 0.53)`"""
    if step not in series.steps:
        return "–"
    at = series.steps.index(step)
    spread = ""
    if band and series.low and series.low[at] != series.high[at]:
        spread = f' <span class="spread">({number(series.low[at])} to {number(series.high[at])})</span>'
    return number(series.values[at]) + spread


def label_variables(page: RunPage) -> str:
    """Bars of R2, or F1 for names, with a mark at the untrained network and all numbers beside them."""
    if not page.variables:
        return ""
    heads = ("Score", "Untrained", "Error", "Untrained error", "Exact F1", "Labels saved", "Unseen")
    head = (
        '<thead><tr><th scope="col">Variable</th><th scope="col" class="track-head"><span>0</span><span>0.5</span>'
        f"<span>1</span></th>{''.join(f'<th scope=col>{name}</th>' for name in heads)}</tr></thead>"
    )
    body = "".join(
        f'<tbody><tr class="category"><th colspan="{2 + len(heads)}" scope="rowgroup">{words(category)}</th></tr>'
        f"{''.join(_bar(variable, heads) for variable in group)}</tbody>"
        for category, group in groupby(page.variables, key=lambda variable: variable.category)
    )
    legend = (
        '<p class="legend"><span><i class="key-fill"></i>this run</span>'
        '<span><i class="key-mark untrained"></i>untrained, same width</span></p>'
    )
    note = (
        '<p class="note">The score is R² of a place or a number and F1 of a name, with all labels. The error is the'
        " mean distance from the true value, in the variable’s own units. Exact F1 counts only values that are exactly"
        " right. Unseen is the share of test frames whose value never occurs in training.</p>"
    )
    bars = (
        '<div class="scroll" role="region" tabindex="0" aria-label="Scores by variable">'
        f'<table class="bars">{head}{body}</table></div>'
    )
    return section("variables", "Scores by variable", note + legend + bars)


def _bar(variable: VariableScore, heads: Sequence[str]) -> str:
    ours, untrained = variable.ours, variable.untrained or Score()
    key = "f1" if ours.r2 is None else "r2"
    score, floor = getattr(ours, key), getattr(untrained, key)
    mark = ""
    if floor is not None:
        mark = f'<i class="mark untrained" style="left:{percent(floor)}" title="Untrained {number(floor)}"></i>'
    unseen = "–" if variable.unseen is None else f"{100 * variable.unseen:.1f} %"
    errors = (error(ours.error), error(untrained.error))
    values = (number(score), number(floor), *errors, number(ours.f1), escape(variable.saved) or "–", unseen)
    cells = "".join(
        f'<td{" class=ours" if index == 0 else ""} data-label="{name.lower()}">{value}</td>'
        for index, (name, value) in enumerate(zip(heads, values, strict=True))
    )
    metric = "F1" if key == "f1" else "R²"
    title = escape(f"{variable.name}: {metric} {number(score)}")
    return (
        f'<tr class="bar"><th scope="row">{escape(variable.name)} <span class="kind">{escape(variable.kind)}</span>'
        f'</th><td class="track-cell" title="{title}"><span class="track">'
        f'<span class="fill" style="width:{percent(score)}"></span>{mark}</span></td>{cells}</tr>'
    )


def label_details(page: RunPage, reading: LabelReading) -> str:
    """Where the state is found: by width and layer; how easily: controls and description length."""
    body = "".join((_widths(page, reading), _layers(reading), _controls(reading), _bits(reading)))
    return section("where", "Where the state is found", body) if body else ""


def _widths(page: RunPage, reading: LabelReading) -> str:
    if reading.widths is None:
        return ""
    index = page.all_charts.index(reading.widths)
    note = (
        "Mean R² of places and numbers, with all labels, from the first k principal components of the features and from"
        " k random directions. State that needs few components takes up much of the representation."
    )
    values = f"<details><summary>Values</summary>{curve_table(reading.widths)}</details>"
    return (
        f'<h3>Width</h3><p class="note">{note}</p><div class="wide">{chart_figure(index, reading.widths, values)}</div>'
    )


def _layers(reading: LabelReading) -> str:
    rows = [[escape(row.name), f"{row.width:,}", number(row.ours), number(row.untrained)] for row in reading.layers]
    return _more("Layers", reading.layers_note, ("Layer", "Width", "This run", "Untrained"), rows, highlighted=2)


def _controls(reading: LabelReading) -> str:
    note = (
        "R² of each variable, and of a control: its values exchanged at random, one for another, which only a probe"
        " that memorises can read. The difference is what the features themselves say about the variable. It is 0 for a"
        " variable of two values, which exchanging leaves in order."
    )
    rows = [
        [
            escape(row.name),
            number(row.ours),
            number(row.control),
            number(row.ours - row.control),
            number(_minus(row.untrained, row.untrained_control)),
        ]
        for row in reading.controls
    ]
    heads = ("Variable", "R²", "Control R²", "Difference", "Difference, untrained")
    return _more("Selectivity", note, heads, rows, highlighted=3)


def _minus(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left - right


def _bits(reading: LabelReading) -> str:
    note = (
        "Kilobits to send all training labels to somebody who has the features, the probe learning on the way."
        " Fewer is better; without features every value costs the same."
    )
    rows = [
        [escape(row.name), _kilobits(row.ours), _kilobits(row.untrained), _kilobits(row.plain)] for row in reading.bits
    ]
    total = [sum(row.ours for row in reading.bits), None, sum(row.plain for row in reading.bits)]
    if all(row.untrained is not None for row in reading.bits):
        total[1] = sum(row.untrained or 0.0 for row in reading.bits)
    if rows:
        rows.append(["All variables", *map(_kilobits, total)])
    heads = ("Variable", "This run", "Untrained", "Without features")
    return _more("Description length", note, heads, rows, highlighted=1)


def _kilobits(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _more(title: str, note: str, heads: Sequence[str], rows: Sequence[Sequence[str]], highlighted: int) -> str:
    """A closed part of the section."""
    if not rows:
        return ""
    return (
        f'<details class="more"><summary>{title}</summary><p class="note">{escape(note)}</p>'
        f"{table(title, heads, rows, highlighted)}</details>"
    )


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], highlighted: int | None = None) -> str:
    """Rows of cells that are already escaped; the first cell of a row names it."""

    def kind(column: int) -> str:
        return ' class="ours"' if column == highlighted else ""

    head = "".join(f'<th scope="col"{kind(i)}>{name}</th>' for i, name in enumerate(heads))
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td{kind(i)}>{cell}</td>" for i, cell in enumerate(row[1:], 1))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(title)}"><table class="scores plain">'
        f"<caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def error(value: float | None) -> str:
    """Three digits at most: errors of a byte go from 0.01 to 255."""
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
