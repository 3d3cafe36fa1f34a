"""Diagnostics of runs: side by side for the terminal, and those of one run for its page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from manicap.core.errors import UserError
from manicap.core.files import sha256_file
from manicap.core.results import read_result
from manicap.diagnostics.groups import GroupCapacity
from manicap.diagnostics.runs import RunDiagnosis
from manicap.report.contents import Chart, Diagnosis, Fact, Series
from manicap.train.logs import DIAGNOSTICS, read_log

MEASURES: dict[str, str] = {
    "effective_rank": "effective rank (RankMe)",
    "effective_rank_centered": "effective rank, centred",
    "lidar": "LiDAR",
    "participation_ratio": "participation ratio",
    "decay_exponent": "eigenvalue decay (alpha)",
    "alignment": "alignment of pairs (t, t+1), or views",
    "uniformity": "uniformity",
    "spread": "spread",
    "dead_fraction": "dead units, fraction",
    "information_bound": "InfoNCE bound, cosine critic (nats)",
    "information_ceiling": "ceiling log K, cosine critic",
    "own_bound_global": "InfoNCE bound, own critic, global (nats)",
    "own_bound_local": "InfoNCE bound, own critic, local (nats)",
    "own_ceiling": "ceiling log K, own critic",
    "centroid_norm": "nuclear norm of the heads' centroids",
    "centroid_bound": "bound of that norm",
    "centroid_percent_error": "percent below that bound",
    "head_cka": "heads: mean CKA",
    "head_cosine": "heads: mean cosine",
    "membership_entropy": "membership entropy (nats)",
    "usage_entropy": "usage entropy of charts (nats)",
    "largest_chart": "share of the largest chart",
    "regularizer_loss_share": "regularizer's term, relative to the rest of the loss",
    "regularizer_gradient_share": "gradient of that term on the encoder, relative to the rest's",
    "glue_capacity": "capacity, GLUE (mean over variables)",
    "glue_limit": "  limit (mean over variables that have one)",
    "glue_dimension": "  dimension",
    "glue_radius": "  radius",
    "glue_utility": "  utility",
    "glue_centre_alignment": "  alignment of centres",
    "glue_axis_alignment": "  alignment of axes",
    "manifold_capacity": "capacity, mean field (mean over variables)",
    "manifold_radius": "  radius",
    "manifold_dimension": "  dimension",
    "neural_collapse": "neural collapse, NC1",
}
"""Display names of the measures, in the order of the table."""
CHARTED = ("effective_rank_centered", "spread", "centroid_percent_error", "head_cosine", "usage_entropy")
"""What the page shows over training steps."""
SHARES = {"the loss": "regularizer_loss_share", "its gradient on the encoder": "regularizer_gradient_share"}
"""What the page shows side by side."""
CAPACITY_HEADING = "capacity by GLUE, its limit (95 %)"


def measure_rows(results: Sequence[RunDiagnosis]) -> list[tuple[str, list[str]]]:
    """Label and one text per run, for every measure that some run has."""
    shown = [name for name in MEASURES if any(name in result.measures for result in results)]
    return [(MEASURES[name], [_cell(result.measures, name) for result in results]) for name in shown]


def capacity_rows(results: Sequence[RunDiagnosis]) -> list[tuple[str, list[str]]]:
    """Variable and `capacity, limit (interval)` per run."""
    names = list(dict.fromkeys(name for result in results for name in result.capacities))
    return [(name, [_capacity(result.capacities.get(name)) for result in results]) for name in names]


def diagnostics_table(results: Sequence[RunDiagnosis]) -> Table:
    config = results[0].config
    title = f"Diagnostics on {config}, features: {config.probe_input}"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    for result in results:
        heading = f"{result.method}\n{result.subject}\nseed {result.seed}\nwidth {result.width:,}"
        table.add_column(heading, justify="right", overflow="fold")
    for label, cells in measure_rows(results):
        table.add_row(label, *cells)
    table.add_section()
    table.add_row(CAPACITY_HEADING, style="bold")
    for label, cells in capacity_rows(results):
        table.add_row(f"  {label}", *cells)
    return table


def read_diagnosis(run_dir: Path) -> Diagnosis | None:
    """What `manicap diagnose` and `manicap nerve` have written beside a run; None if neither was called."""
    diagnosed, drawn = (run_dir / "diagnostics.json").is_file(), (run_dir / "nerve.json").is_file()
    if not diagnosed and not drawn:
        return None
    found: dict[str, Any] = {}
    if diagnosed:
        result = RunDiagnosis.read(run_dir / "diagnostics.json")
        found["measures"] = tuple(Fact(label, cells[0]) for label, cells in measure_rows([result]))
        found["capacities"] = tuple(Fact(label, cells[0]) for label, cells in capacity_rows([result]))
        found["alarms"], found["notes"] = tuple(result.alarms), tuple(result.notes)
    if drawn:
        found["nerve_svg"], found["nerve_caption"] = _nerve(run_dir)
    return Diagnosis(**found)


def observation_charts(run_dir: Path) -> tuple[Chart, ...]:
    """Curves of what `--diagnose-every` measured during training."""
    lines = read_log(run_dir, DIAGNOSTICS)
    charts = [
        Chart(f"Batch: {MEASURES[name]}", found) for name in CHARTED if (found := _series(lines, "training", name))
    ]
    if shares := sum((_series(lines, label, name) for label, name in SHARES.items()), start=()):
        charts.append(Chart("Regularizer's term relative to the other terms, in", shares))
    return tuple(charts)


def _series(lines: Sequence[Mapping[str, Any]], label: str, name: str) -> tuple[Series, ...]:
    """The measure over steps; nothing if no line has it."""
    points = [(line["step"], line[name]) for line in lines if name in line]
    return (Series(label, *zip(*points, strict=True)),) if points else ()


def _nerve(run_dir: Path) -> tuple[str, str]:
    """The drawing and its caption."""
    result, path = read_result(run_dir / "nerve.json"), run_dir / "nerve.svg"
    if not path.is_file() or sha256_file(path) != result["drawing_sha256"]:
        raise UserError(f"{path} is not the drawing that was written; draw it again: manicap nerve {run_dir}")
    betti = ", ".join(map(str, result["nerve"]["betti_numbers"]))
    caption = f"Charts and their Čech nerve: Betti numbers {betti} at threshold {result['nerve']['threshold']:g}"
    return path.read_text(encoding="utf-8"), caption


def _cell(measures: Mapping[str, float], name: str) -> str:
    if name not in measures:
        return "–"
    return f"{measures[name]:.4g}" if math.isfinite(measures[name]) else "undefined"


def _capacity(entry: GroupCapacity | None) -> str:
    if entry is None:
        return "–"
    measured, trend = entry.glue.capacity, entry.trend
    if trend.limit is None or trend.interval is None:
        return f"{measured:.3f}, none"
    low, high = trend.interval
    return f"{measured:.3f}, {trend.limit:.3f} ({low:.3f} to {high:.3f})"
