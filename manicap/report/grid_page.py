"""A grid's report as one self-contained HTML file. Every text from outside passes through `escape`."""

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

from manicap.bench.grid import Grid
from manicap.bench.scores import GridScores, RunScore
from manicap.report.assets import asset, content_policy, fill
from manicap.report.grid_entries import MEAN_ROW, METRICS, Entry, ScoreTable
from manicap.report.grid_figures import Drawing, inline_svg
from manicap.report.grid_summary import BOLD_RULE, Summary
from manicap.report.grid_tables import (
    AGGREGATE_HEAD,
    BOUNDS,
    aggregate_cells,
    aggregate_note,
    difference,
    layout_note,
    published,
    score,
)
from manicap.statistics.scales import Scale

HINT = "Hover over a number, or tap it, to see its runs."


def build_grid_page(
    grid: Grid,
    found: GridScores,
    parts: Sequence[Summary],
    drawings: Sequence[Drawing],
    links: Mapping[str, str],
) -> str:
    """`links` maps run names to the addresses of their pages, for runs that have one."""
    script = asset("grid.js")
    contents = {
        "title": escape(grid.title),
        "policy": content_policy(script),
        "css": f"{asset('page.css')}\n{asset('grid.css')}",
        "summary": escape(summary_line(grid, found)),
        "caveat": _caveat(grid, found),
        "scores": _scores(parts),
        "figures": _figures(drawings),
        "errors": _errors(found),
        "runs": _runs(grid, found, parts, links),
        "js": script,
    }
    return fill(asset("grid.html"), **contents)


def summary_line(grid: Grid, found: GridScores) -> str:
    done = len({score.run_name for score in found.scores})
    total = len(grid.cells)
    failed = f", {len(found.errors)} failed" if found.errors else ""
    return (
        f"{done} of {total} runs measured{failed}: {_count(len(grid.datasets), 'dataset')},"
        f" {_count(len(grid.columns), 'column')}, {_count(len(grid.file.seeds), 'seed')}, each encoder probed in"
        f" {_count(len(grid.evaluations), 'way')}. What was not run is left blank."
    )


def caveat_line(grid: Grid, found: GridScores) -> str:
    told = f"Not the paper's setting: {'; '.join(found.differences)}." if found.differences else ""
    return " ".join(part for part in (grid.file.note, told) if part)


def _caveat(grid: Grid, found: GridScores) -> str:
    text = caveat_line(grid, found)
    return f'<p class="caveat" role="note">{escape(text)}</p>' if text else ""


def _scores(parts: Sequence[Summary]) -> str:
    if not parts:
        return _section("scores", "Scores", '<p class="note">Nothing is measured yet.</p>')
    evaluations = list(dict.fromkeys(part.evaluation for part in parts))
    metrics = list(dict.fromkeys(part.metric for part in parts))
    picks = _select("evaluation", "Probed", {name: name for name in evaluations})
    picks += _select("metric", "Metric", {name: METRICS[name] for name in metrics})
    by_choice = {(part.evaluation, part.metric): part for part in parts}
    panels = ""
    for evaluation in evaluations:
        for metric in metrics:
            part = by_choice.get((evaluation, metric))
            panels += _panel(part) if part is not None else _no_panel(evaluation, metric)
    return _section("scores", "Scores", f'<div class="picks">{picks}</div>{panels}')


def _panel(part: Summary) -> str:
    label = part.title
    note = f"{layout_note(part)} {BOLD_RULE}"
    if part.table.compared:
        note += f" Published: {part.domain.source}."
    return (
        f'<div class="panel" data-evaluation="{escape(part.evaluation)}" data-metric="{part.metric}">'
        f'<h3>{escape(label)}</h3><p class="note">{escape(note)}</p>'
        f'<div class="with-details"><div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"{_score_table(part.table, label)}</div>"
        f'<output class="readout details">{HINT}</output></div>'
        f'<h3>Over all runs</h3><p class="note">{escape(aggregate_note(part))}</p>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="Over all runs, {escape(label)}">'
        f"{_aggregate_table(part)}</div></div>"
    )


def _no_panel(evaluation: str, metric: str) -> str:
    """For a metric that only another way of probing has: both can be chosen."""
    return (
        f'<div class="panel" data-evaluation="{escape(evaluation)}" data-metric="{metric}">'
        f'<p class="note">{escape(f"{METRICS[metric]} is not measured by {evaluation}.")}</p></div>'
    )


def _score_table(table: ScoreTable, label: str) -> str:
    compared = table.compared
    heads = [_head("method" if table.is_transposed else "dataset", "text")]
    for column, title in table.columns.items():
        heads.append(_head(title, "number", first=True))
        if column in compared:
            heads += [_head("published", "number"), _head("difference", "number")]
    body = "".join(_score_row(table, row) for row in table.rows if row != MEAN_ROW)
    foot = f"<tfoot>{_score_row(table, MEAN_ROW)}</tfoot>" if MEAN_ROW in table.rows else ""
    return (
        f'<table class="grid-table sortable"><caption>{escape(label)}</caption><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{body}</tbody>{foot}</table>"
    )


def _score_row(table: ScoreTable, row: str) -> str:
    cells = [f'<th scope="row">{escape(table.rows[row])}</th>']
    for column in table.columns:
        entry = table.entries[row, column]
        kind = "first best" if entry.is_bold else "first"
        cells.append(
            _number(
                score(entry, table.scale),
                entry.mean,
                kind,
                _details(f"{table.rows[row]}, {table.columns[column]}", entry, table.scale),
            )
        )
        if column in table.compared:
            cells.append(_number(published(entry), entry.published, "beside"))
            cells.append(_number(difference(entry), entry.difference, "beside"))
    return f"<tr>{''.join(cells)}</tr>"


def _details(place: str, entry: Entry, scale: Scale) -> str:
    """The runs behind a number, in one line."""
    if entry.mean is None:
        return f"{place}: not run"
    runs = ", ".join(f"{scale.text(value)} (seed {seed})" for seed, value in entry.values)
    told = f"{len(entry.values)} runs: {runs}" if runs else f"mean over datasets {scale.text(entry.mean)}"
    paper = f"; published {published(entry)}, ours {difference(entry)}" if entry.published is not None else ""
    return f"{place}: {told}{paper}"


def _aggregate_table(part: Summary) -> str:
    kinds = ("text", *("number",) * (len(AGGREGATE_HEAD) - 1))
    heads = "".join(_head(name, kind) for name, kind in zip(AGGREGATE_HEAD, kinds, strict=True))
    body = []
    for row in part.aggregates:
        cells = aggregate_cells(row, part.scale)
        estimates = (row.mean, row.iqm, row.difference, row.improvement)
        values = [float(row.num_runs), float(max(row.widths)), *(item.value if item else None for item in estimates)]
        marks = ["best" if row.is_distinct and name == "difference" else "" for name in AGGREGATE_HEAD[1:]]
        shown = (_number(*item) for item in zip(cells[1:], values, marks, strict=True))
        body.append(f'<tr><th scope="row">{escape(cells[0])}</th>{"".join(shown)}</tr>')
    return f'<table class="grid-table sortable"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def _figures(drawings: Sequence[Drawing]) -> str:
    if not drawings:
        return ""
    body = "".join(
        f'<figure class="figure" id="figure-{drawing.name}">{inline_svg(drawing)}'
        f"<figcaption>{escape(drawing.caption)}</figcaption></figure>"
        for drawing in drawings
    )
    return _section("figures", "Figures", f'<div class="figures">{body}</div>')


def _errors(found: GridScores) -> str:
    failed = _list_section("errors", "Runs that failed", found.errors)
    return failed + _list_section("lost-curves", "Curves that are left out", found.lost_curves)


def _list_section(name: str, title: str, reasons: Mapping[str, str]) -> str:
    if not reasons:
        return ""
    items = "".join(f"<li>{escape(run_name)}: {escape(reason)}</li>" for run_name, reason in reasons.items())
    return _section(name, title, f"<ul>{items}</ul>")


def _runs(grid: Grid, found: GridScores, parts: Sequence[Summary], links: Mapping[str, str]) -> str:
    """One row per run, with its score in every way of probing: by the first metric of each."""
    if not found.scores:
        return ""
    first = {part.evaluation: part for part in reversed(parts)}
    shown = {name: first[name] for name in grid.evaluations if name in first}
    by_place: dict[tuple[str, str, int], dict[str, RunScore]] = {}
    for item in found.scores:
        by_place.setdefault((item.dataset, item.column, item.seed), {})[item.evaluation] = item
    heads = _head("dataset", "text") + _head("column", "text") + _head("seed", "number") + _head("steps", "number")
    heads += "".join(_head(part.title, "number") for part in shown.values()) + _head("run", "text")
    rows = []
    for place, scores in by_place.items():
        dataset, column, seed = place
        any_score = next(iter(scores.values()))
        name, steps = any_score.run_name, any_score.steps
        link = f'<a href="{escape(quote(links[name]))}">{escape(name)}</a>' if name in links else escape(name)
        cells = (
            f'<th scope="row">{escape(grid.domain.subject_title(dataset))}</th><td class="text">{escape(column)}</td>'
        )
        cells += f"<td>{seed}</td>" + _number(f"{steps:,}", steps)
        for evaluation, part in shown.items():
            cells += _run_number(scores.get(evaluation), part)
        rows.append(f'<tr>{cells}<td class="text">{link}</td></tr>')
    table = f'<table class="grid-table sortable"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    scroll = f'<div class="scroll tall" role="region" tabindex="0" aria-label="Runs">{table}</div>'
    return _section("runs", "Runs", scroll)


def _run_number(run: RunScore | None, part: Summary) -> str:
    value = None if run is None else run.metrics.get(part.metric)
    if run is None or value is None:
        return _number("", None)
    return _number(f"{BOUNDS[run.bounds.get(part.metric, '')]}{part.scale.text(value)}", value)


def _head(name: str, kind: str, first: bool = False) -> str:
    mark = ' class="first"' if first else ""
    return f'<th scope="col" data-kind="{kind}"{mark}><button type="button">{escape(name)}</button></th>'


def _number(text: str, value: float | None, kind: str = "", details: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    title = f' title="{escape(details)}"' if details else ""
    sorted_by = "" if value is None else f"{value:.6g}"
    return f'<td{mark} data-value="{sorted_by}"{title}>{escape(text)}</td>'


def _select(name: str, label: str, choices: Mapping[str, str]) -> str:
    options = "".join(f'<option value="{escape(key)}">{escape(text)}</option>' for key, text in choices.items())
    return f'<label>{label} <select id="{name}">{options}</select></label>'


def _section(key: str, title: str, body: str) -> str:
    return f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>\n{body}\n</section>'


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
