"""A grid's report from result files alone; the scores are made up, so every number can be worked out by hand."""

import csv
import io
import re

import numpy as np
import pytest

from manicap.bench.cell import Outcome, write_error
from manicap.bench.grid import build_grid
from manicap.bench.scores import Curve, gather_scores
from manicap.report.grid_figures import draw_all, inline_svg, mean_curve
from manicap.report.grid_report import write_grid_report
from manicap.report.grid_summary import Summary, summaries
from manicap.report.grid_tables import latex, markdown, runs_csv, table_csv
from manicap.report.names import slug, unique
from manicap.statistics.estimates import Interval
from tests.report.synthetic_runs import write_synthetic_run

VALUES = {
    "title": "Made up",
    "datasets": ["pong", "freeway"],
    "methods": ["st-dim", "dim-c+"],
    "seeds": [0, 1, 2],
    "variants": [{"method": "dim-c+", "epsilon": [0.0, 0.005, 0.05]}],
    "evaluations": [{"probe_input": "output"}, {"probe_input": "backbone"}],
}


def made_up_score(cell, evaluation):
    """st-dim: 0.5, 0.6, 0.7 on Pong; dim-c+ 0.1 above it on Pong, and now above, now below it on Freeway."""
    seed, settings = cell.config.seed, cell.config.settings
    score = 0.5 + 0.1 * seed
    if cell.config.method == "dim-c+":
        score += 0.1 + 0.001 * seed if cell.config.game == "pong" else (-1) ** seed * 0.1
        score -= abs(settings.epsilon - 5e-4)
    return score + (0.05 if evaluation.probe_input == "backbone" else 0.0)


@pytest.fixture(scope="module")
def grid():
    return build_grid(VALUES, "made-up")


@pytest.fixture(scope="module")
def runs_dir(grid, tmp_path_factory):
    """All runs but dim-c+ with epsilon 0.05, which failed on Pong and was not run on Freeway."""
    runs_dir = tmp_path_factory.mktemp("runs")
    for (_, label, _), cell in grid.places.items():
        if label != "dim-c+ (epsilon 0.05)":
            write_synthetic_run(runs_dir, cell, made_up_score, validations=5)
    failed = grid.places["pong", "dim-c+ (epsilon 0.05)", 0]
    write_error(runs_dir / failed.name, Outcome(failed.name, "failed", "out of <luck>"), 2)
    return runs_dir


@pytest.fixture(scope="module")
def found(grid, runs_dir):
    return gather_scores(grid, runs_dir)


@pytest.fixture(scope="module")
def part(grid, found):
    return Summary(grid, found, "output", "f1")


def test_a_table_holds_mean_deviation_and_the_published_number(part):
    entry = part.table.entries["pong", "st-dim"]
    assert entry.mean == pytest.approx(0.6, abs=1e-12)
    assert entry.deviation == pytest.approx(0.1, abs=1e-12)
    assert entry.published == 0.81  # Table 1 of arXiv 2405.13848
    assert entry.difference == pytest.approx(-0.21, abs=1e-12)


def test_the_last_row_is_the_mean_over_datasets_with_the_mean_of_their_deviations(part):
    entry = part.table.entries["mean", "dim-c+"]
    # Pong: 0.6, 0.701, 0.802; Freeway: 0.5 + 0.1, 0.6 - 0.1, 0.7 + 0.1 = 0.6, 0.5, 0.8.
    assert entry.mean == pytest.approx((0.701 + 1.9 / 3) / 2, abs=1e-9)
    deviations = (np.std([0.6, 0.701, 0.802], ddof=1) + np.std([0.6, 0.5, 0.8], ddof=1)) / 2
    assert entry.deviation == pytest.approx(deviations, abs=1e-9)
    assert entry.published == pytest.approx((0.84 + 0.95) / 2, abs=1e-12)


def test_what_was_not_run_is_blank_and_never_filled_in(part):
    for row in ("pong", "freeway", "mean"):
        assert part.table.entries[row, "dim-c+ (epsilon 0.05)"].mean is None
    text = markdown("t", "", [part])
    (line,) = [line for line in text.splitlines() if line.startswith("| Freeway")]
    assert line.endswith("|  |")


def test_bold_needs_an_interval_without_zero_against_every_other_column(part):
    bold = {place for place, entry in part.table.entries.items() if entry.is_bold}
    # On Pong dim-c+ is above epsilon 0 by exactly 0.0005 in all seeds, above the rest by more; on Freeway the paired
    # differences to st-dim change sign.
    assert bold == {("pong", "dim-c+")}
    aggregates = {row.column: row for row in part.aggregates}
    assert aggregates["st-dim"].difference is None  # the baseline
    difference = aggregates["dim-c+"].difference
    assert difference.value == pytest.approx((0.1 + 0.101 + 0.102 + 0.1 - 0.1 + 0.1) / 6, abs=1e-9)
    assert aggregates["dim-c+"].is_distinct == difference.interval.excludes_zero


def test_two_seeds_are_never_bold(runs_dir):
    grid = build_grid(VALUES | {"seeds": [0, 1]}, "two")
    part = Summary(grid, gather_scores(grid, runs_dir), "output", "f1")
    assert not any(entry.is_bold for entry in part.table.entries.values())
    assert not any(row.is_distinct for row in part.aggregates)


def test_a_single_run_has_no_deviation_and_a_point_as_interval(runs_dir):
    grid = build_grid(VALUES | {"seeds": [1]}, "one")
    part = Summary(grid, gather_scores(grid, runs_dir), "output", "f1")
    assert part.table.entries["pong", "st-dim"].deviation is None
    assert part.sweeps[0].points[0].interval == Interval(0.7005, 0.7005)
    assert "[" not in markdown("t", "", [part])  # which is not shown as one


def test_a_sweep_has_the_points_that_were_run(part):
    pong, freeway = part.sweeps
    assert (pong.varied, pong.dataset, freeway.dataset) == ("epsilon", "pong", "freeway")
    assert [point.value for point in pong.points] == [0.0, 0.005]


def test_published_points_of_the_papers_figures_are_beside_ours(tmp_path):
    values = {"datasets": ["video_pinball"], "variants": [{"method": "dim-c+", "epsilon": [0.0005, 0.001, 0.1]}]}
    grid = build_grid(values, "epsilon")
    for cell in grid.cells:
        write_synthetic_run(tmp_path, cell)
    (sweep,) = Summary(grid, gather_scores(grid, tmp_path), "output", "f1").sweeps
    # The text of arXiv 2405.13848 states 0.664 and 0.474, and nothing for 0.001.
    assert [point.published for point in sweep.points] == [0.664, None, 0.474]


def test_the_csv_files_hold_every_number(grid, found, part):
    rows = list(csv.DictReader(io.StringIO(table_csv(summaries(grid, found)))))
    assert len(rows) == 2 * 2 * 3 * 5  # evaluations, metrics, rows with the mean, columns
    (row,) = [
        r
        for r in rows
        if (r["evaluation"], r["metric"], r["dataset"], r["column"]) == ("output", "f1", "pong", "st-dim")
    ]
    assert (row["mean"], row["published"], row["difference"]) == ("0.600000", "0.810000", "-0.210000")
    runs = list(csv.DictReader(io.StringIO(runs_csv(found))))
    assert len(runs) == 2 * 4 * 3 * 2  # datasets, columns that were run, seeds, evaluations
    assert {run["features"] for run in runs} == {"3456"}


def test_latex_has_a_row_a_dataset_and_escapes_its_characters(part):
    text = latex("t", [part])
    (line,) = [line for line in text.splitlines() if line.startswith("Pong")]
    assert line.count("&") == 3 + 3 + 3  # ours, published and difference of two methods, three variants
    assert "\\textbf{0.701 $\\pm$ 0.101}" in line
    assert "95 \\%" in text


def test_differences_from_the_paper_are_said(grid, found):
    assert "12,000 frames of play, not 100,000" in found.differences
    # What a variant changes is its point, not a caveat.
    assert not any("epsilon" in line for line in found.differences)


def test_the_same_results_give_the_same_bytes(grid, runs_dir, tmp_path):
    def report():
        write_grid_report(grid, runs_dir, tmp_path)
        return {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*.*")}

    first = report()
    assert {"report.html", "tables.md", "tables.tex", "table.csv", "runs.csv"} <= set(first)
    assert {name.split(".")[-1] for name in first} == {"html", "md", "tex", "csv", "svg", "pdf"}
    assert report() == first


def test_figures_keep_their_text_and_refer_to_no_id_of_another(grid, found):
    drawings = draw_all(summaries(grid, found), found)
    names = [drawing.name for drawing in drawings]
    assert "epsilon-pong-output" in names
    assert {"bars-output", "profiles-backbone", "learning-curves"} <= set(names)
    identifiers = [found for drawing in drawings for found in re.findall(r' id="([^"]+)"', inline_svg(drawing))]
    assert len(identifiers) == len(set(identifiers))
    bars = inline_svg(drawings[names.index("bars-output")])
    assert ">Freeway</text>" in bars
    assert "currentColor" in bars


def test_a_mean_curve_is_relative_to_each_seeds_first_value():
    curves = [Curve("pong", "x", seed, (10, 20, 30), (2.0 * (seed + 1), 1.0 * (seed + 1), 1.0)) for seed in (0, 1)]
    steps, losses = mean_curve(curves)
    assert (steps[0], steps[-1]) == (10, 30)
    assert losses[0] == 1.0
    # At step 20 both are half their first; at 30 they are 1/2 and 1/4.
    assert np.interp(20, steps, losses) == pytest.approx(0.5, abs=1e-12)
    assert losses[-1] == pytest.approx(0.375, abs=1e-12)


def test_a_grid_with_nothing_measured_still_has_a_report(grid, tmp_path):
    page = write_grid_report(grid, tmp_path / "none", tmp_path / "report").read_text()
    assert "0 of 30 runs measured" in page
    assert "Nothing is measured yet." in page


def test_images_are_laid_out_as_in_table_2_methods_down(tmp_path):
    values = {"datasets": ["cifar10"], "methods": ["barlow-twins", "barlow-twins-c+"]}
    grid = build_grid(values, "table2")
    for cell in grid.cells:
        write_synthetic_run(tmp_path, cell, lambda cell, evaluation: 0.5)
    (part,) = summaries(grid, gather_scores(grid, tmp_path))  # accuracy alone
    assert list(part.table.rows) == ["barlow-twins", "barlow-twins-c+"]
    # Table 2 of arXiv 2405.13848: 0.905 and 0.922.
    lines = [line for line in markdown("t", "", [part]).splitlines() if line.startswith("| barlow")]
    assert lines[0] == "| barlow-twins | 0.500 | 0.905 | -0.405 |"
    assert lines[1] == "| barlow-twins-c+ | 0.500 | 0.922 | -0.422 |"
    (row, _) = csv.DictReader(io.StringIO(table_csv([part])))
    assert (row["dataset"], row["column"], row["published"]) == ("cifar10", "barlow-twins", "0.905000")
    assert "CIFAR10" in write_grid_report(grid, tmp_path, tmp_path / "report").read_text()


HOSTILE = "$\\frac{$ C+ [/x](javascript:a) | <b>x</b> & \\input{/etc/passwd} 5% #_^~ \n| new | row"


def test_no_label_is_mark_up_in_the_tables(tmp_path):
    variants = [{"method": "dim-c+", "label": HOSTILE, "epsilon": 0.1}]
    grid = build_grid(VALUES | {"title": HOSTILE, "seeds": [0], "variants": variants}, "hostile")
    for cell in grid.cells:
        write_synthetic_run(tmp_path, cell, made_up_score, validations=2)
    parts = summaries(grid, gather_scores(grid, tmp_path))
    text = markdown(grid.title, "", parts)
    # A cell ends at a bar without a backslash: every line of a table has as many as its head.
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.M)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "<b>" not in text
    assert "](" not in re.sub(r"\\.", "", text)
    tex = latex(grid.title, parts)
    row = next(line for line in tex.splitlines() if line.startswith("dataset"))
    # By hand, as LaTeX writes each of these characters.
    assert (
        r"\$\textbackslash{}frac\{\$ C+ {[}/x{]}(javascript:a) | \textless{}b\textgreater{}x\textless{}/b\textgreater{}"
        r" \& \textbackslash{}input\{/etc/passwd\} 5\% \#\_\textasciicircum{}\textasciitilde{} | new | row" in row
    )
    assert len([line for line in tex.splitlines() if line.startswith("%")]) == 1


def test_a_label_that_is_half_a_formula_is_drawn_as_it_is(tmp_path):
    variants = [{"method": "dim-c+", "label": r"$\frac{$ a $x$", "epsilon": 0.1}]
    grid = build_grid(VALUES | {"seeds": [0], "datasets": ["pong"], "variants": variants}, "formula")
    for cell in grid.cells:
        write_synthetic_run(tmp_path, cell, made_up_score, validations=2)
    found = gather_scores(grid, tmp_path)
    drawn = {drawing.name: drawing.svg for drawing in draw_all(summaries(grid, found)[:1], found)}
    assert r"$\frac{$ a $x$" in drawn["bars-output"]
    assert r"$\frac{$ a $x$" in drawn["learning-curves"]


def test_equal_slugs_are_numbered():
    assert [slug(text) for text in ("../../Etc/x", "ms_pacman, 5e-3", "Č", "a" * 300)] == [
        "etc-x",
        "ms_pacman-5e-3",
        "unnamed",
        "a" * 80,
    ]
    assert unique(["a", "b", "a", "a-2", "a"]) == ["a", "b", "a-2", "a-2-2", "a-3"]
