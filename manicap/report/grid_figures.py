"""The figures of a grid, as SVG and PDF. Equal scores give equal bytes.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish; lines also differ in dashes, markers and
hatches.
"""

import io
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from manicap.bench.scores import Curve, GridScores
from manicap.report.grid_entries import METRICS, Sweep
from manicap.report.grid_label_curves import label_curves
from manicap.report.grid_summary import Summary
from manicap.report.grid_tables import probe_warning
from manicap.report.names import slug, unique

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx")
INK = "#1a1e23"
"""Colour of text and axes; the page replaces it with the reader's own text colour."""
STYLE: Any = {
    "svg.hashsalt": "manicap",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.transparent": True,
    "text.parse_math": False,  # labels are plain text: a dollar is a dollar
}
CURVE_POINTS = 25
BARS_A_ROW = 48


@dataclass(frozen=True)
class Drawing:
    name: str
    """Names its files and its place on the page: letters, digits, hyphens and underscores."""
    caption: str
    svg: str
    pdf: bytes


def draw_all(parts: Sequence[Summary], found: GridScores) -> list[Drawing]:
    """Figures for the first metric of every way of probing; learning curves once."""
    drawings = []
    seen: set[str] = set()
    for part in parts:
        if part.evaluation in seen:
            continue
        seen.add(part.evaluation)
        drawings += _drawings_of(part)
    if found.curves and parts:
        caption = (
            "Validation loss as a fraction of its first value, mean over seeds. Methods have different losses: only the"
            " shapes of curves can be compared."
        )
        labels = [column.label for column in parts[0].grid.columns]
        title_of = parts[0].domain.subject_title
        drawings.append(_drawing("learning-curves", caption, lambda: draw_curves(found.curves, labels, title_of)))
    names = unique(drawing.name for drawing in drawings)
    return [replace(drawing, name=name) for drawing, name in zip(drawings, names, strict=True)]


def _drawings_of(part: Summary) -> list[Drawing]:
    where, probed, metric = part.evaluation, part.probed, METRICS[part.metric]
    found = []
    for sweep in part.sweeps:
        varied = sweep.varied.replace("_", " ")
        intervals = ", with 95 % intervals over seeds" if part.num_seeds > 1 else ", one run each"
        caption = f"{metric} on {part.domain.subject_title(sweep.dataset)} over {varied}, {probed}{intervals}."
        if any(point.published is not None for point in sweep.points):
            caption = f"{caption} {probe_warning(part)}".strip()
        name = f"{sweep.varied} {Path(sweep.dataset).name} {where}"
        found.append(_drawing(name, caption, partial(draw_sweep, sweep, part)))
    found.append(
        _drawing(f"bars {where}", f"{metric} on each dataset, {probed}; {_bars(part)}.", partial(draw_bars, part))
    )
    if part.profiles:
        bands = ", with stratified bootstrap 95 % bands" if part.num_seeds > 1 else ""
        caption = f"Performance profiles, {probed}: fraction of all runs above a value of {metric}{bands}."
        found.append(_drawing(f"profiles {where}", caption, partial(draw_profiles, part)))
    if label_curves(part):
        caption = (
            f"Mean score by number of labels, {probed}: R² of places and numbers, F1 of names and classes, over"
            " variables, draws of the labels, seeds and datasets, at the numbers of labels that all runs have. Solid:"
            " the encoder; dotted: the same network untrained. Scores below 0 count as 0."
        )
        found.append(_drawing(f"label curves {where}", caption, partial(draw_label_curves, part)))
    return found


def _bars(part: Summary) -> str:
    if part.num_seeds < 2:
        return "bars are single runs" + " and start at 1, where nothing is saved" * part.scale.is_ratio
    if part.scale.is_ratio:
        return "bars are geometric means and start at 1, where nothing is saved; whiskers geometric standard deviations"
    return "bars are means, whiskers standard deviations over seeds"


def draw_bars(part: Summary) -> Figure:
    """Bars in rows of a few datasets each."""
    columns = [c.label for c in part.grid.columns if part.by_dataset(c.label)]
    per_row = max(1, min(len(part.grid.datasets), BARS_A_ROW // max(len(columns), 1)))
    rows = [part.grid.datasets[i : i + per_row] for i in range(0, len(part.grid.datasets), per_row)]
    figure = Figure(figsize=(8.0, 1.9 * len(rows) + 0.6), layout="constrained")
    panels = figure.subplots(len(rows), 1, squeeze=False, sharey=True)[:, 0]
    for panel, datasets in zip(panels, rows, strict=True):
        for index, label in enumerate(columns):
            _draw_bars_of(panel, part, datasets, label, index, 0.85 / len(columns))
        panel.set_xticks(
            range(len(datasets)), [part.domain.subject_title(name).replace(" ", "\n") for name in datasets]
        )
        panel.set_xlim(-0.6, per_row - 0.4)
        panel.set_ylabel(METRICS[part.metric])
        if part.scale.is_ratio:
            _ratio_axis(panel, "y")
    _legend(figure, panels[0].containers[1::2])
    return figure


def _draw_bars_of(panel: Axes, part: Summary, datasets: Sequence[str], label: str, index: int, width: float) -> None:
    found = [(i, part.scale.values(part.values(dataset, label).values())) for i, dataset in enumerate(datasets)]
    measured = [(i, scores) for i, scores in found if len(scores)]
    means = np.array([scores.mean() for _, scores in measured])
    spreads = np.array([scores.std(ddof=1) if len(scores) > 1 else np.nan for _, scores in measured])
    low, top, high = (
        np.array([part.scale.back(x) for x in each]) for each in (means - spreads, means, means + spreads)
    )
    offset = (index + 0.5) * width - 0.425
    panel.bar(
        [i + offset for i, _ in measured],
        top - part.scale.neutral,
        width,
        bottom=part.scale.neutral,
        yerr=[top - low, high - top],  # NaN draws nothing
        label=label,
        color=PALETTE[index % len(PALETTE)],
        hatch=HATCHES[index // len(PALETTE) % len(HATCHES)],
        error_kw={"elinewidth": 0.8, "ecolor": INK},
    )


def _ratio_axis(axes: Axes, which: str) -> None:
    """A logarithmic axis with plain numbers, and a line at 1."""
    axis = getattr(axes, f"{which}axis")
    axes.set(**{f"{which}scale": "log"})
    axis.set_major_locator(LogLocator(10, (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} x"))
    axis.set_minor_locator(NullLocator())
    draw = axes.axhline if which == "y" else axes.axvline
    draw(1, color=INK, lw=0.8, zorder=0.5)


def draw_profiles(part: Summary) -> Figure:
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = figure.subplots()
    for index, (label, profile) in enumerate(part.profiles.items()):
        colour = PALETTE[index % len(PALETTE)]
        axes.step(profile.thresholds, profile.shares, where="post", label=label, color=colour, ls=_dash(index))
        axes.fill_between(profile.thresholds, profile.low, profile.high, step="post", color=colour, alpha=0.15, lw=0)
    axes.set(xlabel=f"{METRICS[part.metric]} above", ylabel="fraction of runs", ylim=(0, 1.02))
    lines = axes.get_lines()[:]
    if part.scale.is_ratio:
        _ratio_axis(axes, "x")
    else:
        axes.set_xlim(0, 1)
    _legend(figure, lines)
    return figure


def draw_label_curves(part: Summary) -> Figure:
    """Encoders and the same networks untrained, the mean over datasets."""
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    found = label_curves(part)
    ticks: set[int] = set()
    for index, (label, curves) in enumerate(found.items()):
        for name, curve in curves.items():
            style = ":" if name == "untrained" else "-"
            colour = PALETTE[index % len(PALETTE)]
            axes.plot(list(curve), list(curve.values()), style, color=colour, lw=1.3, label=label)
            ticks |= set(curve)
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(sorted(ticks), [f"{count:,}" for count in sorted(ticks)], rotation=45)
    axes.set(xlabel="labels", ylabel="mean score")
    untrained = Line2D([], [], color=INK, ls=":", label="the same network untrained")
    _legend(figure, [*(line for line in axes.get_lines() if line.get_linestyle() == "-"), untrained])
    return figure


def draw_sweep(sweep: Sweep, part: Summary) -> Figure:
    figure = Figure(figsize=(4.5, 3.0), layout="constrained")
    axes = figure.subplots()
    values = [point.value for point in sweep.points]
    numeric = all(isinstance(value, int | float) for value in values)
    places: list[float] = [float(value) for value in values] if numeric else list(range(len(values)))  # type: ignore[arg-type]
    means = np.array([point.mean for point in sweep.points])
    whiskers = np.abs(np.array([[p.interval.low, p.interval.high] for p in sweep.points]).T - means)
    axes.errorbar(places, means, whiskers, color=PALETTE[0], marker=MARKERS[0], capsize=3, label=sweep.method)
    published = [(x, point.published) for x, point in zip(places, sweep.points, strict=True)]
    stated = [(x, y) for x, y in published if y is not None]
    if stated:
        named = f"published ({part.published_probe} probe)" if part.has_another_probe else "published"
        axes.plot(*zip(*stated, strict=True), color=PALETTE[3], marker="x", ls="none", label=named)
    if numeric and max(places) > 0:
        smallest = min(x for x in places if x > 0)
        axes.set_xscale("symlog", linthresh=smallest) if min(places) <= 0 else axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(places, [f"{value:g}" if isinstance(value, float) else str(value) for value in values])
    axes.set(xlabel=sweep.varied.replace("_", " ").replace(" x ", " × "), ylabel=METRICS[part.metric])
    if part.scale.is_ratio:
        _ratio_axis(axes, "y")
    _legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def draw_curves(curves: Sequence[Curve], labels: Sequence[str], title_of: Callable[[str], str]) -> Figure:
    """One panel per dataset."""
    grouped: dict[str, dict[str, list[Curve]]] = defaultdict(lambda: defaultdict(list))
    for curve in curves:
        grouped[curve.dataset][curve.column].append(curve)
    across = min(4, len(grouped))
    down = -(-len(grouped) // across)
    figure = Figure(figsize=(max(4.5, 2.3 * across), 2.0 * down + 0.7), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False)
    for panel in panels.flat[len(grouped) :]:
        panel.set_axis_off()
    for panel, (dataset, columns) in zip(panels.flat, grouped.items(), strict=False):
        panel.set_title(title_of(dataset), fontsize=9)
        for label, group in columns.items():
            index = labels.index(label)
            steps, losses = mean_curve(group)
            panel.plot(steps, losses, color=PALETTE[index % len(PALETTE)], ls=_dash(index), label=label, lw=1.2)
    for panel in panels[-1]:
        panel.set_xlabel("step")
    drawn = {line.get_label(): line for panel in panels.flat for line in panel.get_lines()}
    _legend(figure, list(drawn.values()))
    return figure


def mean_curve(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds at a few steps that all runs have reached, each as a fraction of its first value."""
    start = max(curve.steps[0] for curve in curves)
    stop = max(start, min(curve.steps[-1] for curve in curves))
    steps = np.linspace(start, stop, CURVE_POINTS)
    relative = [np.interp(steps, curve.steps, np.array(curve.losses) / curve.losses[0]) for curve in curves]
    return steps, np.mean(relative, 0)


def inline_svg(drawing: Drawing) -> str:
    """For a page: no XML header, only the ids that are referenced, the reader's text colour."""
    svg = drawing.svg[drawing.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found.group(0) if found.group(1) in used else "", svg)
    for identifier in sorted(used, key=len, reverse=True):
        svg = svg.replace(f'id="{identifier}"', f'id="{drawing.name}-{identifier}"')
        svg = svg.replace(f"url(#{identifier})", f"url(#{drawing.name}-{identifier})")
        svg = svg.replace(f'href="#{identifier}"', f'href="#{drawing.name}-{identifier}"')
    svg = re.sub(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', _sized, svg, count=1)
    return svg.replace(INK, "currentColor").replace("#000000", "currentColor")


def _sized(found: re.Match[str]) -> str:
    """As wide as the page allows, but no wider than drawn."""
    opening = found.group(0)
    pixels = float(found.group(1)) * 4 / 3
    return re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', f' style="max-width:{pixels:.0f}px" role="img"', opening)


def _legend(figure: Figure, handles: Sequence[Any]) -> None:
    """A legend above the axes, in as many columns as the longest name allows."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    columns = max(1, int(figure.get_figwidth() / (0.075 * longest + 0.55)))
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)), fontsize=8)


def _dash(index: int) -> str:
    return DASHES[(index // 2) % len(DASHES)]


def _drawing(name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
    with mpl.rc_context(STYLE):
        figure, svg, pdf = draw(), io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", svg.getvalue().decode())  # XML cannot hold control characters
    return Drawing(slug(name), caption, text, pdf.getvalue())
