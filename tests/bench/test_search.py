"""Successive halving: who goes on, on which budget, and by which score."""

import math
from dataclasses import replace

import pytest
import tomli_w

from manicap.bench.grid import build_grid
from manicap.bench.scores import RunScore
from manicap.bench.search import at_share, column_scores, search_grid
from manicap.cli.main import main
from manicap.core.errors import UserError
from tests.bench.small_grid import VALUES

UNITS = [8, 9, 10, 11, 12]


def grid_of(units=UNITS, **changes):
    values = {
        "methods": [],
        "variants": [{"method": "st-dim", "units": list(units)}],
        "run": {"collect_steps": 640, "batch_size": 6, "max_steps": 80, "warmup_steps": 16},
        "probe": {"probe_steps": 640},
    }
    return build_grid(VALUES | values | changes, "search")


def score(label, value, dataset="pong", seed=0):
    curve = {"encoder": {50: 0.0, 200: value, 400: 1.0}}
    metrics = {"labels_saved": 2.0, "r2": 1 - value, "f1": value}
    return RunScore(dataset, label, seed, "ridge", metrics, 8, 1, "run", "ridge", "ridge", labels=curve)


def measuring(values, seen):
    """By column what it scores, whatever its budget; and the grids that were asked for."""

    def finish(part):
        seen.append(part)
        known = {f"st-dim (units {units})": value for units, value in values.items()}
        return [score(label, known[label], dataset, seed) for dataset, label, seed in part.places if label in known]

    return finish


def test_the_better_half_goes_on_with_twice_the_steps():
    seen = []
    values = {8: 0.1, 9: 0.5, 10: 0.2, 11: 0.4, 12: 0.3}
    rungs = list(search_grid(grid_of(), measuring(values, seen)))
    # An eighth, a quarter and a half of 80 steps; warm-up shrinks with them. Of 5 columns 3 go on, then 2, then 1.
    assert [{cell.config.max_steps for cell in part.cells} for part in seen] == [{10}, {20}, {40}]
    assert [{cell.config.warmup_steps for cell in part.cells} for part in seen] == [{2}, {4}, {8}]
    assert [len(part.columns) for part in seen] == [5, 3, 2]
    assert [rung.kept for rung in rungs] == [
        ("st-dim (units 9)", "st-dim (units 11)", "st-dim (units 12)"),
        ("st-dim (units 9)", "st-dim (units 11)"),
        ("st-dim (units 9)",),
    ]
    assert list(rungs[0].scores.values()) == [0.5, 0.4, 0.3, 0.2, 0.1]


def test_the_last_rung_has_the_runs_of_the_grid_itself():
    grid, seen = grid_of([8, 9]), []
    rungs = list(search_grid(grid, measuring({8: 0.1, 9: 0.2}, seen), shares=(1.0,)))
    assert {cell.name for cell in seen[0].cells} == {cell.name for cell in grid.cells}
    assert rungs[-1].kept == ("st-dim (units 9)",)


def test_the_score_is_the_mean_over_datasets_and_seeds_and_another_metric_can_be_asked_for():
    grid = grid_of([8, 9], datasets=["pong", "breakout"], seeds=[0, 1])
    one, two = (column.label for column in grid.columns)
    found = [score(one, value, dataset) for value, dataset in ((0.1, "pong"), (0.3, "breakout"))] * 2
    found += [score(two, 0.4)] * 4
    assert column_scores(found, [one, two], 4, "few_labels") == pytest.approx({one: 0.2, two: 0.4})
    assert column_scores(found, [one, two], 4, "r2") == pytest.approx({one: 0.8, two: 0.6})
    # On a logarithmic scale, as labels saved are averaged everywhere.
    assert column_scores(found, [one, two], 4, "labels_saved") == pytest.approx({one: math.log(2), two: math.log(2)})


def test_a_probe_without_label_curves_needs_another_metric():
    plain = replace(score("a", 0.5), labels={}, probe="knn")
    with pytest.raises(UserError, match="the probe knn has no label curves; choose another metric"):
        column_scores([plain], ["a"], 1, "few_labels")


def test_a_column_with_a_failed_run_does_not_go_on():
    seen = []
    first = next(search_grid(grid_of([8, 9, 10]), measuring({8: 0.1, 10: 0.2}, seen)))
    assert first.kept == ("st-dim (units 10)", "st-dim (units 8)")
    assert math.isnan(first.scores["st-dim (units 9)"])
    with pytest.raises(UserError, match="no column of the search could be measured"):
        list(search_grid(grid_of([8, 9]), measuring({}, [])))


def test_a_shortened_grid_keeps_a_baseline_that_it_has():
    grid = grid_of(baseline="st-dim (units 9)")
    assert at_share(grid, ["st-dim (units 9)", "st-dim (units 10)"], 0.5).baseline == "st-dim (units 9)"
    assert at_share(grid, ["st-dim (units 10)"], 0.5).baseline == "st-dim (units 10)"


@pytest.mark.parametrize(
    ("changes", "asked", "words"),
    [
        ({"variants": [{"method": "st-dim"}]}, {}, "at least two columns"),
        ({}, {"metric": "beauty"}, "unknown metric 'beauty'; there are few_labels, labels_saved, r2"),
        ({}, {"shares": (0.5, 0.25)}, "shares must rise"),
        ({}, {"shares": (0.5, 2.0)}, "at most 1"),
        ({}, {"shares": ()}, "shares must rise"),
        ({"preset": "paper", "run": {}}, {}, "a search divides max_steps"),
    ],
)
def test_what_cannot_be_searched_is_said_before_anything_is_trained(changes, asked, words):
    with pytest.raises(UserError, match=words):
        next(search_grid(grid_of(**changes), lambda part: pytest.fail("nothing to train"), **asked))


def test_a_search_of_real_runs_prints_its_rungs_and_goes_on_where_it_stopped(data_dir, tmp_path, capsys):
    values = {"methods": [], "variants": [{"method": "st-dim", "units": [8, 9]}]}
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(VALUES | values | {"run": {"collect_steps": 640, "batch_size": 6, "max_steps": 4}}))
    places = ["--runs-dir", str(tmp_path / "runs"), "--data-dir", str(data_dir), "--out", str(tmp_path / "report")]
    command = ["bench", "search", str(path), "--metric", "f1", "--shares", "0.5", "--quiet", *places]
    main(command)
    text = capsys.readouterr().out
    assert "0.5 of the steps" in text
    assert text.count("continues") == 1
    assert "best: st-dim (units " in text
    assert (tmp_path / "report" / "report.html").is_file()
    assert len(list((tmp_path / "runs").glob("*/encoder.json"))) == 2
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/encoder.json")}
    main(command)
    assert capsys.readouterr().out == text
    assert {path: path.stat().st_mtime_ns for path in before} == before
