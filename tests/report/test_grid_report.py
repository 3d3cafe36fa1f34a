"""A grid's report from result files alone; the scores are made up, so every number can be worked out by hand."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from manicap.bench.cell import Outcome, write_error
from manicap.bench.grid import build_grid
from manicap.bench.scores import Curve, gather_scores
from manicap.core.config import config_hash, to_dict
from manicap.core.sealed import write_sealed
from manicap.domains.result import RunResult, TrainingFacts
from manicap.pretrained.encoder_files import FORMAT
from manicap.probing.metrics import Score, Scores
from manicap.probing.reading import Reading
from manicap.probing.state_result import StateEvaluation
from manicap.report.grid_figures import draw_all, draw_bars, inline_svg, mean_curve
from manicap.report.grid_label_curves import label_curves
from manicap.report.grid_report import write_grid_report
from manicap.report.grid_summary import Summary, summaries
from manicap.report.grid_tables import latex, markdown, runs_csv, table_csv
from manicap.report.names import slug, unique
from manicap.statistics.estimates import Interval
from manicap.train.logs import METRICS, LogFile
from manicap.train.record import RunRecord
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


COUNTS = (50, 100, 200, 400, 800, 1600, 3200)


def made_up_saved(cell):
    """st-dim saves 2, 8 and 4 x, dim-c+ 1.5 times as much; untrained networks nothing."""
    factor = (2.0, 8.0, 4.0)[cell.config.seed % 3]
    return {"st-dim": factor, "dim-c+": 1.5 * factor}.get(cell.config.method, 1.0)


def reading(labels):
    """A curve that rises by 0.1 whenever the labels double, and is at 0.5 with so many."""
    curve = tuple(0.5 + 0.1 * math.log2(count / labels) for count in COUNTS)
    return Reading(COUNTS, {"player_x": (curve,)}, {"player_x": 1.0}, 1.0, {}, {}, {}, (), 0)


def made_up_evaluation(cell, evaluation, value, saved):
    """Every score is `value`; by the ridge probe, 200 labels are worth 200 times `saved` on the untrained network."""
    score = Score(value, min(1.0, value + 0.02), value, value, 1.0)
    return StateEvaluation(
        subject=cell.config.subject,
        protocol=evaluation.protocol,
        probe=evaluation.probe,
        probe_options={},
        width=3456,
        seed=cell.config.seed,
        store="made up",
        encoder="made up",
        threads=1,
        seconds={},
        annotation_set=evaluation.annotation_set,
        feature_width=3456,
        steps=evaluation.probe_steps,
        counts={"frames_train": 1, "frames_val": 1, "frames_test": 1},
        categories={"agent_localization": ("player_x",)},
        kinds={"player_x": "place"},
        unseen={"player_x": 0.0},
        scores=Scores(score, {"agent_localization": score}, {"player_x": score}),
        readings={"encoder": reading(200), "untrained": reading(200 * saved)} if evaluation.probe == "ridge" else {},
    )


def write_run(runs_dir, cell, score=lambda cell, evaluation: 0.5, validations=2, saved=made_up_saved):
    """The files that a run on a game leaves."""
    run_dir = runs_dir / cell.name
    run_dir.mkdir(parents=True)
    sha256 = cell.name.encode().hex()
    write_sealed(run_dir / "encoder.json", {"format": FORMAT, "sha256": {"chosen": sha256}})
    for evaluation in cell.evaluations:
        encoder = f"{sha256}-{evaluation.probe_input}"
        found = made_up_evaluation(cell, evaluation, score(cell, evaluation), saved(cell))
        training = TrainingFacts(steps=125_000, epochs=100, best_epoch=99, weights="best", precision="float32")
        result = RunResult(
            config=cell.config,
            evaluation_config=evaluation,
            training=training,
            encoder=encoder,
            evaluation=replace(found, encoder=encoder),
            versions={},
            predictions_sha256="made up",
        )
        result.write(run_dir / "results" / f"{config_hash(evaluation)}.json")
    log = LogFile(run_dir / METRICS)
    for epoch in range(validations):
        log.write({"split": "val", "epoch": epoch, "step": 1250 * (epoch + 1), "loss": 5.0 / (1 + 0.1 * epoch)})
    log.close()
    RunRecord(to_dict(cell.config), 20, logs={METRICS: log.sha256}).write(run_dir)
    (run_dir / "report.html").write_text("<!doctype html>")


@pytest.fixture(scope="module")
def grid():
    return build_grid(VALUES, "made-up")


@pytest.fixture(scope="module")
def runs_dir(grid, tmp_path_factory):
    """All runs but dim-c+ with epsilon 0.05, which failed on Pong and was not run on Freeway."""
    runs_dir = tmp_path_factory.mktemp("runs")
    for (_, label, _), cell in grid.places.items():
        if label != "dim-c+ (epsilon 0.05)":
            write_run(runs_dir, cell, made_up_score, validations=5)
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
        write_run(tmp_path, cell)
    (sweep,) = Summary(grid, gather_scores(grid, tmp_path), "output", "f1").sweeps
    # The text of arXiv 2405.13848 states 0.664 and 0.474, and nothing for 0.001.
    assert [point.published for point in sweep.points] == [0.664, None, 0.474]


def test_the_csv_files_hold_every_number(grid, found, part):
    rows = list(csv.DictReader(io.StringIO(table_csv(summaries(grid, found)))))
    assert len(rows) == 2 * 5 * 3 * 5  # evaluations, metrics, rows with the mean, columns
    (row,) = [
        r
        for r in rows
        if (r["evaluation"], r["metric"], r["dataset"], r["column"]) == ("output", "f1", "pong", "st-dim")
    ]
    assert (row["mean"], row["published"], row["difference"]) == ("0.600000", "0.810000", "-0.210000")
    assert (row["probe"], row["published_probe"]) == ("ridge", "linear")
    (row,) = [
        r
        for r in rows
        if (r["evaluation"], r["metric"], r["dataset"], r["column"]) == ("output", "labels_saved", "mean", "st-dim")
    ]
    assert (row["mean"], row["deviation"]) == ("4.000000", "2.000000")
    assert (row["published"], row["published_probe"]) == ("", "")
    runs = list(csv.DictReader(io.StringIO(runs_csv(found))))
    assert len(runs) == 2 * 4 * 3 * 2  # datasets, columns that were run, seeds, evaluations
    assert {run["features"] for run in runs} == {"3456"}
    assert {run["probe"] for run in runs} == {"ridge"}
    assert {run["labels_saved"] for run in runs if run["column"] == "st-dim"} == {"2.000000", "8.000000", "4.000000"}


@pytest.fixture(scope="module")
def saved(grid, found):
    return Summary(grid, found, "output", "labels_saved")


def test_labels_saved_are_averaged_as_factors(saved):
    # 2, 8 and 4 x: their logarithms to base 2 are 1, 3 and 2, with mean 2 and standard deviation 1.
    entry = saved.table.entries["pong", "st-dim"]
    assert (entry.mean, entry.deviation) == (pytest.approx(4, abs=1e-9), pytest.approx(2, abs=1e-9))
    entry = saved.table.entries["mean", "dim-c+"]
    assert (entry.mean, entry.deviation) == (pytest.approx(6, abs=1e-9), pytest.approx(2, abs=1e-9))
    aggregates = {row.column: row for row in saved.aggregates}
    # Two games of 2, 4 and 8; a quarter of six is cut to one at each end: 2, 4, 4 and 8 have the mean 4.
    assert (aggregates["st-dim"].mean.value, aggregates["st-dim"].iqm.value) == (pytest.approx(4), pytest.approx(4))
    paired = aggregates["dim-c+"].difference
    # Every pair has the factor 1.5, so drawing among them changes nothing.
    np.testing.assert_allclose([paired.value, paired.interval.low, paired.interval.high], 1.5, rtol=1e-9)
    assert aggregates["dim-c+"].is_distinct
    # 3 beats 2; 12 beats 2, 8 and 4; 6 beats 2 and 4: six of nine.
    assert aggregates["dim-c+"].improvement.value == pytest.approx(6 / 9, abs=1e-9)


def test_labels_saved_are_shown_as_factors_and_never_beside_published_numbers(saved):
    assert saved.table.compared == ()
    text = markdown("t", "", [saved])
    assert "## labels saved, output (ridge probe)" in text
    assert "Geometric mean ×÷ geometric standard deviation over seeds." in text
    assert "published" not in text
    (line,) = [line for line in text.splitlines() if line.startswith("| Pong")]
    assert line.startswith("| Pong | 4 ×÷ 2 | 6 ×÷ 2 |")
    (line,) = [line for line in text.splitlines() if line.startswith("| dim-c+ | 6")]
    assert "| **x 1.5 [1.5, 1.5]** |" in line
    assert "4 $\\times$$\\div$ 2" in latex("t", [saved])


def test_r2_and_macro_f1_have_no_published_numbers(grid, found):
    for metric in ("r2", "macro_f1"):
        assert Summary(grid, found, "output", metric).table.compared == ()


def test_a_factor_that_is_only_a_bound_is_marked(tmp_path):
    grid = build_grid({"datasets": ["pong"], "methods": ["st-dim", "dim-c+"], "seeds": [0]}, "bound")
    # The untrained curve ends at 3,200 labels, 16 times 200.
    for cell in grid.cells:
        write_run(tmp_path, cell, saved=lambda cell: 100.0 if cell.config.method == "dim-c+" else 2.0)
    found = gather_scores(grid, tmp_path)
    text = markdown("t", "", [Summary(grid, found, "output", "labels_saved")])
    assert "| Pong | 2 x | ≥ 16 x |" in text
    assert "this is a bound" in text
    assert [run["labels_saved_bound"] for run in csv.DictReader(io.StringIO(runs_csv(found)))] == ["", "at least"]


def test_the_paper_s_column_says_that_its_probe_was_another_unless_it_was_not(part, tmp_path):
    warning = "The published numbers were measured with another probe (linear); ours is ridge."
    assert warning in markdown("t", "", [part])
    assert warning in latex("t", [part])
    grid = build_grid({"datasets": ["pong"], "methods": ["st-dim"], "probe": {"probe": "linear"}}, "linear")
    for cell in grid.cells:
        write_run(tmp_path, cell)
    parts = summaries(grid, gather_scores(grid, tmp_path))
    # Without label curves there is nothing to save, and exact values come first.
    assert [part.metric for part in parts] == ["f1", "accuracy", "macro_f1", "r2"]
    text = markdown("t", "", parts)
    assert "## F1, output (linear probe)" in text
    assert "| published |" in text
    assert "another probe" not in text


def test_label_curves_are_means_over_games(grid, saved, runs_dir):
    curves = label_curves(saved)
    assert set(curves) == {"st-dim", "dim-c+", "dim-c+ (epsilon 0)", "dim-c+ (epsilon 0.005)"}  # run on all games
    # Encoders have 0.5 with 200 labels and 0.1 more with 400. Untrained, 200 labels are 2, 8 and 4 times too few: 0.1,
    # 0.3 and 0.2 less.
    assert curves["st-dim"]["encoder"][200] == pytest.approx(0.5, abs=1e-9)
    assert curves["st-dim"]["encoder"][400] == pytest.approx(0.6, abs=1e-9)
    assert curves["st-dim"]["untrained"][200] == pytest.approx(0.3, abs=1e-9)
    # dim-c+ saves 3, 12 and 6 x. With 50 labels, seed 1 would be 0.1 log2(200 * 12 / 50) = 0.558 below 0.5: what is
    # below 0 counts as 0.
    less = [0.1 * math.log2(200 * factor / 50) for factor in (3, 6)]
    assert curves["dim-c+"]["untrained"][50] == pytest.approx((0.5 - less[0] + 0.0 + 0.5 - less[1]) / 3, abs=1e-9)


def test_labels_saved_are_drawn_on_a_logarithmic_axis_from_1(saved, part):
    (axes,) = draw_bars(saved).axes
    assert axes.get_yscale() == "log"
    assert any(list(line.get_ydata()) == [1, 1] for line in axes.get_lines())
    pong = axes.patches[0]  # st-dim on Pong: from 1 to 4
    assert (pong.get_y(), pong.get_y() + pong.get_height()) == (1, pytest.approx(4, rel=1e-9))
    (axes,) = draw_bars(part).axes
    assert (axes.get_yscale(), axes.patches[0].get_y()) == ("linear", 0)


def test_a_grid_probed_in_two_ways_names_both_probes(tmp_path):
    evaluations = [{"probe": "ridge"}, {"probe": "linear"}]
    grid = build_grid({"datasets": ["pong"], "methods": ["st-dim"], "evaluations": evaluations}, "both")
    for cell in grid.cells:
        write_run(tmp_path / "runs", cell)
    found = gather_scores(grid, tmp_path / "runs")
    drawings = {drawing.name: drawing for drawing in draw_all(summaries(grid, found), found)}
    assert "labels saved on each dataset, output, ridge (ridge probe)" in drawings["bars-output-ridge"].caption
    assert "F1 on each dataset, output, linear (linear probe)" in drawings["bars-output-linear"].caption
    assert "label-curves-output-ridge" in drawings
    assert "label-curves-output-linear" not in drawings
    page = write_grid_report(grid, tmp_path / "runs", tmp_path / "report").read_text()
    assert "labels saved is not measured by output, linear." in page
    runs = page[page.index('id="runs"') :]
    assert ">labels saved, output, ridge (ridge probe)<" in runs
    assert ">F1, output, linear (linear probe)<" in runs


def test_latex_has_a_row_a_dataset_and_escapes_its_characters(part):
    text = latex("t", [part])
    (line,) = [line for line in text.splitlines() if line.startswith("Pong")]
    assert line.count("&") == 3 + 3 + 3  # ours, published and difference of two methods, three variants
    assert "\\textbf{0.701 $\\pm$ 0.101}" in line
    assert "95 \\%" in text


def test_differences_from_the_paper_are_said(grid, found):
    assert "20,000 frames of play, not 100,000" in found.differences
    # What a variant changes is its point, not a caveat.
    assert not any("epsilon" in line for line in found.differences)


def test_the_same_results_give_the_same_bytes(runs_dir, tmp_path):
    grid = build_grid(VALUES | {"datasets": ["pong"], "evaluations": [{"probe_input": "output"}]}, "one")

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
        write_run(tmp_path, cell, made_up_score, validations=2)
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
        write_run(tmp_path, cell, made_up_score, validations=2)
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
