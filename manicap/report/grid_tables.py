"""The tables of a grid as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from manicap.bench.scores import GridScores
from manicap.probing.labels_saved import AT
from manicap.report.grid_entries import METRICS, Aggregate, Entry, ScoreTable
from manicap.report.grid_summary import BOLD_RULE, Summary
from manicap.statistics.estimates import Estimate
from manicap.statistics.scales import RATIOS, Scale

BOUNDS = {"": "", "at least": "≥ ", "at most": "≤ "}
MEANINGS = {
    "labels_saved": "Labels saved: how many times as many labels the same probe needs on the untrained network, for the"
    f" score that it has on the encoder with {AT}.",
    "r2": "R²: share of the variance explained, mean over places and numbers.",
}
"""Metrics that need a sentence."""
BOUND_RULE = "≥ and ≤: in some runs the untrained network's label curve ends before it gets there, so this is a bound."


def score(entry: Entry, scale: Scale) -> str:
    """`0.843 ± 0.012` or `≥ 12.3 ×÷ 1.4`; nothing for what was not run."""
    if entry.mean is None:
        return ""
    return f"{BOUNDS[entry.bound]}{scale.spread_text(entry.mean, entry.deviation)}"


def published(entry: Entry) -> str:
    if entry.published is None:
        return ""
    spread = f" ± {entry.published_deviation:.3f}" if entry.published_deviation is not None else ""
    return f"{entry.published:.3g}{spread}" if entry.published else f"0{spread}"


def difference(entry: Entry) -> str:
    return "" if entry.difference is None else f"{entry.difference:+.3f}"


def estimate(found: Estimate | None, scale: Scale, bound: str = "") -> str:
    """`0.71 [0.65, 0.77]`; for single runs only the value, because a point is not an interval."""
    return "" if found is None else f"{BOUNDS[bound]}{scale.text(found.value, found.interval)}"


AGGREGATE_HEAD = ("column", "runs", "features", "mean", "interquartile mean", "difference", "P(improvement)")


def aggregate_cells(row: Aggregate, scale: Scale) -> list[str]:
    paired = row.difference
    return [
        row.column,
        str(row.num_runs),
        "/".join(map(str, row.widths)),
        estimate(row.mean, scale, row.bound),
        estimate(row.iqm, scale, row.bound),
        "" if paired is None else scale.difference_text(paired.value, paired.interval),
        estimate(row.improvement, Scale(is_ratio=False)),
    ]


def markdown(title: str, caveat: str, parts: Sequence[Summary]) -> str:
    lines = [f"# {escape_markdown(title)}", ""]
    if caveat:
        lines += [escape_markdown(caveat), ""]
    for part in parts:
        table = part.table
        lines += [f"## {escape_markdown(part.title)}", ""]
        head, rows = _plain_table(table, escape_markdown, bold="**{}**")
        lines += [*_markdown_table(head, rows), "", escape_markdown(f"{layout_note(part)} {BOLD_RULE}"), ""]
        aggregates = [(aggregate_cells(row, part.scale), row.is_distinct) for row in part.aggregates]
        body = [
            [escape_markdown(c[0]), *c[1:5], f"**{c[5]}**" if bold and c[5] else c[5], c[6]] for c, bold in aggregates
        ]
        lines += [f"{escape_markdown(aggregate_note(part))}", ""]
        lines += [*_markdown_table(AGGREGATE_HEAD, body), ""]
    return "\n".join(lines)


def latex(title: str, parts: Sequence[Summary]) -> str:
    lines = [f"% {' '.join(title.split())}"]
    for part in parts:
        table = part.table
        caption = f"{part.title}: {layout_note(part)} {BOLD_RULE}"
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
    """Means and deviations of a ratio are geometric, as in the other tables."""
    head = ("evaluation", "probe", "metric", "dataset", "column", "runs", "mean", "deviation", "bound", "published")
    end = ("published_deviation", "difference", "published_probe")
    rows: list[Sequence[object]] = []
    for part in parts:
        table = part.table
        for row in table.rows:
            for column in table.columns:
                entry = table.entries[row, column]
                ours = (*map(_exact, (entry.mean, entry.deviation)), entry.bound)
                theirs = map(_exact, (entry.published, entry.published_deviation, entry.difference))
                probe = "" if entry.published is None else part.published_probe
                place = (column, row) if table.is_transposed else (row, column)
                runs = len(entry.values) or ""
                rows.append((part.evaluation, part.probe, part.metric, *place, runs, *ours, *theirs, probe))
    return _csv((*head, *end), rows)


def runs_csv(found: GridScores) -> str:
    metrics = [name for name in METRICS if any(name in item.metrics for item in found.scores)]
    bounded = [name for name in metrics if name in RATIOS]
    bounds = [f"{name}_bound" for name in bounded]
    head = ("dataset", "column", "seed", "evaluation", "probe", *metrics, *bounds, "features", "steps", "run")
    rows: list[Sequence[object]] = []
    for item in found.scores:
        scores = [_exact(item.metrics.get(metric)) for metric in metrics]
        place = (item.dataset, item.column, item.seed, item.evaluation, item.probe)
        scores += [item.bounds.get(name, "") for name in bounded]
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
            ours = escape(score(entry, table.scale))
            cells.append(bold.format(ours) if entry.is_bold else ours)
            if column in compared:
                cells += [escape(published(entry)), escape(difference(entry))]
        rows.append(cells)
    return head, rows


def layout_note(part: Summary) -> str:
    """What the numbers of a table are."""
    beside = ", followed by published means and ours minus published" if part.table.compared else ""
    bounded = any(entry.bound for entry in part.table.entries.values())
    sentences = (f"{what_is_shown(part)}{beside}.", meaning(part), BOUND_RULE * bounded, probe_warning(part))
    return " ".join(sentence for sentence in sentences if sentence)


def what_is_shown(part: Summary) -> str:
    if part.num_seeds < 2:
        return "One run each"
    if part.scale.is_ratio:
        return "Geometric mean ×÷ geometric standard deviation over seeds"
    return "Mean ± standard deviation over seeds"


def meaning(part: Summary) -> str:
    return MEANINGS.get(part.metric, "")


def probe_warning(part: Summary) -> str:
    """Published numbers of another probe must not be taken for numbers to compare with."""
    if not part.has_another_probe:
        return ""
    return f"The published numbers were measured with another probe ({part.published_probe}); ours is {part.probe}."


def aggregate_note(part: Summary) -> str:
    """What the numbers over all runs are."""
    intervals = ", with stratified bootstrap 95 % intervals" if part.num_seeds > 1 else ""
    means = " Means are geometric and differences are factors." if part.scale.is_ratio else ""
    return (
        f"Over all runs, {part.probe} probe{intervals}. Differences (paired by dataset and seed) and the probability of"
        f" improvement are relative to {part.grid.baseline}.{means}"
    )


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


_MARKDOWN = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"} | {mark: f"\\{mark}" for mark in "\\`*_[]|$~"})
_TEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "%_&#{}$"}
    | {"\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}"}
    | {"[": "{[}", "]": "{]}"}  # after the end of a row, a bracket opens an argument
    | {"<": "\\textless{}", ">": "\\textgreater{}", "±": "$\\pm$", "×": "$\\times$", "÷": "$\\div$", "≥": "$\\geq$"}
    | {"≤": "$\\leq$", "²": "$^2$"}
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
