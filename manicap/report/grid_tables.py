"""The tables of a grid as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from manicap.bench.scores import GridScores
from manicap.report.grid_summary import BOLD_RULE, METRICS, Aggregate, Entry, ScoreTable, Summary
from manicap.statistics.estimates import Estimate


def score(entry: Entry) -> str:
    """`0.843 ± 0.012`, or nothing for what was not run."""
    if entry.mean is None:
        return ""
    return f"{entry.mean:.3f}" + (f" ± {entry.deviation:.3f}" if entry.deviation is not None else "")


def published(entry: Entry) -> str:
    if entry.published is None:
        return ""
    spread = f" ± {entry.published_deviation:.3f}" if entry.published_deviation is not None else ""
    return f"{entry.published:.3g}{spread}" if entry.published else f"0{spread}"


def difference(entry: Entry) -> str:
    return "" if entry.difference is None else f"{entry.difference:+.3f}"


def estimate(found: Estimate | None, sign: bool = False) -> str:
    """`0.71 [0.65, 0.77]`; for single runs only the value, because a point is not an interval."""
    if found is None:
        return ""
    kind = "+.3f" if sign else ".3f"
    if found.interval.low == found.interval.high:
        return f"{found.value:{kind}}"
    return f"{found.value:{kind}} [{found.interval.low:{kind}}, {found.interval.high:{kind}}]"


AGGREGATE_HEAD = ("column", "runs", "features", "mean", "interquartile mean", "difference", "P(improvement)")


def aggregate_cells(row: Aggregate) -> list[str]:
    return [
        row.column,
        str(row.num_runs),
        "/".join(map(str, row.widths)),
        estimate(row.mean),
        estimate(row.iqm),
        estimate(row.difference, sign=True),
        estimate(row.improvement),
    ]


def markdown(title: str, caveat: str, parts: Sequence[Summary]) -> str:
    lines = [f"# {escape_markdown(title)}", ""]
    if caveat:
        lines += [escape_markdown(caveat), ""]
    for part in parts:
        table = part.table
        lines += [f"## {METRICS[part.metric]}, {escape_markdown(part.evaluation)}", ""]
        head, rows = _plain_table(table, escape_markdown, bold="**{}**")
        lines += [*_markdown_table(head, rows), "", f"{_layout_note(part)} {BOLD_RULE}", ""]
        aggregates = [(aggregate_cells(row), row.is_distinct) for row in part.aggregates]
        body = [
            [escape_markdown(c[0]), *c[1:5], f"**{c[5]}**" if bold and c[5] else c[5], c[6]] for c, bold in aggregates
        ]
        intervals = ", with 95 % intervals" if part.num_seeds > 1 else ""
        lines += [f"Over all runs{intervals}; differences are relative to {escape_markdown(part.grid.baseline)}.", ""]
        lines += [*_markdown_table(AGGREGATE_HEAD, body), ""]
    return "\n".join(lines)


def latex(title: str, parts: Sequence[Summary]) -> str:
    lines = [f"% {' '.join(title.split())}"]
    for part in parts:
        table = part.table
        caption = f"{METRICS[part.metric]}, {part.evaluation}: {_layout_note(part)} {BOLD_RULE}"
        head, rows = _plain_table(table, escape_tex, bold="\\textbf{{{}}}")
        lines += [
            "\\begin{table*}[t]",
            f"\\caption{{{escape_tex(caption)}}}",
            "\\centering",
            f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            "\\hline",
            " & ".join(head) + " \\\\\\hline",
            *(" & ".join(row) + " \\\\" for row in rows[:-1]),
            "\\hline",
            " & ".join(rows[-1]) + " \\\\\\hline",
            "\\end{tabular}",
            "\\end{table*}",
            "",
        ]
    return "\n".join(lines)


def table_csv(parts: Sequence[Summary]) -> str:
    head = ("evaluation", "metric", "dataset", "column", "runs", "mean", "deviation", "published")
    end = ("published_deviation", "difference")
    rows: list[Sequence[object]] = []
    for part in parts:
        table = part.table
        for row in table.rows:
            for column in table.columns:
                entry = table.entries[row, column]
                values = (entry.mean, entry.deviation, entry.published, entry.published_deviation, entry.difference)
                place = (column, row) if table.is_transposed else (row, column)
                rows.append((part.evaluation, part.metric, *place, len(entry.values) or "", *map(_exact, values)))
    return _csv((*head, *end), rows)


def runs_csv(found: GridScores) -> str:
    head = ("dataset", "column", "seed", "evaluation", "f1", "accuracy", "features", "steps", "run")
    rows: list[Sequence[object]] = []
    for item in found.scores:
        scores = [_exact(item.metrics.get(metric)) for metric in METRICS]
        place = (item.dataset, item.column, item.seed, item.evaluation)
        rows.append((*place, *scores, item.width, item.steps, item.run_name))
    return _csv(head, rows)


def _plain_table(table: ScoreTable, escape: Callable[[str], str], bold: str) -> tuple[list[str], list[list[str]]]:
    """Each of our columns followed, if scores were published, by those and the difference; all escaped."""
    head, compared = ["method" if table.is_transposed else "dataset"], table.compared
    for column, title in table.columns.items():
        head += [escape(title), "published", "difference"] if column in compared else [escape(title)]
    rows = []
    for row, title in table.rows.items():
        cells = [escape(title)]
        for column in table.columns:
            entry = table.entries[row, column]
            ours = escape(score(entry))
            cells.append(bold.format(ours) if entry.is_bold else ours)
            if column in compared:
                cells += [escape(published(entry)), escape(difference(entry))]
        rows.append(cells)
    return head, rows


def _layout_note(part: Summary) -> str:
    what = what_is_shown(part)
    return f"{what}, followed by published means and ours minus published." if part.table.compared else f"{what}."


def what_is_shown(part: Summary) -> str:
    return "Mean ± standard deviation over seeds" if part.num_seeds > 1 else "One run each"


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


_MARKDOWN = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"} | {mark: f"\\{mark}" for mark in "\\`*_[]|$~"})
_TEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "%_&#{}$"}
    | {"\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}"}
    | {"[": "{[}", "]": "{]}"}  # after the end of a row, a bracket opens an argument
    | {"<": "\\textless{}", ">": "\\textgreater{}", "±": "$\\pm$", "×": "$\\times$"}
)


def escape_markdown(text: str) -> str:
    """As one line, without markup or HTML."""
    return " ".join(text.split()).translate(_MARKDOWN)


def escape_tex(text: str) -> str:
    """As one line, without commands."""
    return " ".join(text.split()).translate(_TEX)


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
