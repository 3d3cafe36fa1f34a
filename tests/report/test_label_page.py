"""The page of a run that is probed from few labels to all: what it says, and in which order."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from manicap.core.config import from_dict, to_dict
from manicap.probing.state_result import StatePredictions
from manicap.report.label_values import label_reading
from manicap.report.page import RunPage, Score, ScoreRow, build_page
from manicap.report.play_page import _tolerances, write_play_page
from tests.report.hand_made import (
    ENCODER_CURVES,
    UNTRAINED_CURVES,
    other_evaluation,
    reading,
    result,
    ridge_evaluation,
    write_run,
)
from tests.report.test_page import Collector, replace_texts


@pytest.fixture
def page_of(tmp_path):
    def page_of(evaluation, **changes):
        run_dir = write_run(tmp_path / "run", result(evaluation, **changes))
        return write_play_page(run_dir, tmp_path / "data").read_text()

    return page_of


def text_of(page):
    """What a reader sees, spaces collapsed."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page[page.index("<body>") :], flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def charts_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))["charts"]


def rows_of(page, label):
    """The cells of the table with this label."""
    table = re.search(rf'aria-label="{re.escape(label)}"><table.*?</table>', page, re.DOTALL).group()
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    return [[text_of(f"<body>{cell}") for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows]


def test_labels_saved_is_the_first_number(page_of):
    page = page_of(ridge_evaluation())
    # 4 x, 1 x and 2 x: the cube root of 8 is 2, and both draws agree.
    sentence = (
        "200 labelled frames do what 400 do on the untrained network: 2 x fewer , 95 % interval 2 to 2 over 2 draws."
    )
    probe = "Measured with the ridge probe. The untrained network is the same network with its initial weights."
    assert text_of(page).startswith(f"manicap · run report Pong: st-dim {sentence} {probe} Labels saved 2 x")
    assert re.findall(r'<section id="([\w-]+)"', page) == [
        "labels",
        "scores",
        "variables",
        "where",
        "left-out",
        "curves",
        "run",
    ]


def test_the_first_chart_has_the_mean_over_variables_with_the_range_of_draws(page_of):
    first, *others = charts_of(page_of(ridge_evaluation()))
    assert first["logarithmic"]
    assert [series["name"] for series in first["series"]] == ["this run", "untrained", "pixels, random"]
    ours = first["series"][0]
    assert ours["steps"] == [50, 100, 200, 400, 800]
    # Means over the three variables: (0.2 + 0.1 + 0.6) / 3 = 0.3, and so on.
    assert ours["values"] == pytest.approx([0.3, 1.4 / 3, 1.9 / 3, 2.15 / 3, 0.8])
    assert ours["low"] == pytest.approx([0.2, *ours["values"][1:]])
    assert ours["high"] == pytest.approx([0.4, *ours["values"][1:]])
    titles = [chart["title"] for chart in others]
    assert titles[:3] == ["ball_x, R²", "player_score, R²", "difficulty, F1"]
    for chart, name in zip(others, ("ball_x", "player_score", "difficulty"), strict=False):
        for series, curves in zip(chart["series"], (ENCODER_CURVES, UNTRAINED_CURVES), strict=True):
            assert series["values"] == pytest.approx(curves[name])
    assert titles[3:] == ["Mean R² by number of directions", "Loss"]


def test_every_value_of_a_curve_is_in_a_table_too(page_of):
    page = page_of(ridge_evaluation())
    table = rows_of(page, "Mean score over variables: R², F1 for names")
    assert table[0] == ["Labels", "this run", "untrained", "pixels, random"]
    assert table[1][:2] == ["50", "0.30 (0.20 to 0.40)"]
    assert table[-1][:2] == ["800", "0.80"]
    assert ["ball_x, R², untrained", "0.10", "0.20", "0.30", "0.45", "0.60"] in rows_of(
        page, "Scores by number of labels"
    )


def test_labels_saved_against_every_floor(page_of):
    assert rows_of(page_of(ridge_evaluation()), "Labels saved") == [
        ["Compared with", "Labels saved", "95 % interval", "200 labels here are worth"],
        ["untrained", "2 x", "2 to 2", "400"],
        ["pixels, random", "2 x", "2 to 2", "400"],
    ]


def test_scores_by_category_for_each_metric(page_of):
    page = page_of(ridge_evaluation())
    r2 = rows_of(page, "R² by category")
    assert r2[2] == ["Small object localization", "0.80", "0.60"]
    assert r2[4] == ["Misc keys", "–", "–"]  # names have no R2
    error = rows_of(page, "Error by category")
    assert error[2] == ["Small object localization", "4.00", "6.00", "30.00"]
    assert error[3] == ["Score clock lives display", "–", "–", "–"]  # numbers: no common units
    assert error[-1] == ["Mean over categories", "–", "–", "–"]
    f1 = rows_of(page, "F1 by category")
    assert f1[2][:4] == ["Small object localization", "0.70", "0.72", "0.05"]
    assert rows_of(page, "Macro F1 by category")[2] == ["Small object localization", "0.60", "0.62", "−0.05"]
    assert rows_of(page, "Accuracy by category")[2][:4] == ["Small object localization", "0.70", "0.72", "0.05"]


def test_scores_by_variable_with_kind_error_labels_saved_and_unseen_values(page_of):
    page = page_of(ridge_evaluation())
    bars = [text_of(f"<body>{row}") for row in re.findall(r'<tr class="bar">.*?</tr>', page, re.DOTALL)]
    assert bars == [
        "ball_x place 0.80 0.60 4.00 6.00 0.70 4 x 0.0 %",
        "player_score number 0.40 0.30 2.00 3.00 0.70 1 x 12.5 %",
        "difficulty name 0.90 0.90 – – 0.90 2 x 0.0 %",
    ]


def test_layers_selectivity_and_description_length(page_of):
    page = page_of(ridge_evaluation())
    assert rows_of(page, "Layers")[1:] == [
        ["convolution 1", "63,648", "0.90", "0.90"],
        ["backbone", "3,456", "0.70", "0.70"],
        ["output", "256", "0.50", "0.50"],
    ]
    # 0.8 with all labels less the control's 0.25; the untrained network's 0.6 less 0.25.
    assert rows_of(page, "Selectivity")[1] == ["ball_x", "0.80", "0.25", "0.55", "0.35"]
    assert len(rows_of(page, "Selectivity")) == 3  # names have no control
    assert rows_of(page, "Description length")[1] == ["ball_x", "3.2", "6.0", "6.4"]
    assert rows_of(page, "Description length")[-1] == ["All variables", "5.6", "9.9", "19.2"]
    assert rows_of(page, "Mean R² by number of directions")[-1] == ["128", "0.75", "0.75", "0.75", "0.75"]


def test_what_is_not_scored_is_named(page_of):
    text = text_of(page_of(ridge_evaluation()))
    assert (
        "Not scored Variables that hardly vary: enemy_x. Test frames that also occur in training: 25."
        " Lives that are too short: 3, with 40 frames." in text
    )


def test_fits_in_doubt_are_warned_of(page_of):
    floor = reading(UNTRAINED_CURVES)
    ours = reading(ENCODER_CURVES, at_end=("ball_x", "player_score"), unconverged=3)
    text = text_of(page_of(ridge_evaluation(readings={"encoder": ours, "untrained": floor})))
    assert "Warnings, and what is not scored" in text
    assert "The regularization chosen for ball_x, player_score (this run) lies at the end of its grid" in text
    assert "3 fits of names (this run) stopped before convergence" in text


@pytest.mark.parametrize("probe", ["ridge", "knn", "linear"])
def test_published_columns_say_with_which_probe_they_were_measured(page_of, probe):
    page = page_of(ridge_evaluation() if probe == "ridge" else other_evaluation(probe))
    said = f"measured with the 2019 code's linear probe, this run with {probe}"
    assert (said in text_of(page)) == (probe != "linear")
    assert (">published, another probe<" in page) == (probe != "linear")
    assert ">published<" in page or probe != "linear"


@pytest.mark.parametrize("probe", ["knn", "logistic", "linear"])
def test_another_probe_keeps_the_headline_of_f1_and_is_named(page_of, probe):
    page = page_of(other_evaluation(probe))
    assert f"Pong: st-dim Mean F1 over categories, {probe} probe: 0.70 , 0.02 below an untrained network" in text_of(
        page
    )
    assert 'id="labels"' not in page
    assert re.search(r'id="metric-(\w+)" checked', page).group(1) == "f1"


def test_an_encoder_that_needs_more_labels_is_said_to(page_of):
    swapped = {"encoder": reading(UNTRAINED_CURVES, spread=0), "untrained": reading(ENCODER_CURVES, spread=0)}
    text = text_of(page_of(ridge_evaluation(readings=swapped)))
    # The scores at 200 are reached with 71 = sqrt(50 x 100), 200 and 100 labels: (0.354 x 1 x 0.5)^(1/3) = 0.561.
    assert "200 labelled frames do only what 110 do on the untrained network: the encoder needs 1.8 x more" in text


def test_nothing_readable_is_said(page_of):
    flat = dict.fromkeys(ENCODER_CURVES, (-0.2,) * 5)
    evaluation = ridge_evaluation(readings={"encoder": reading(flat), "untrained": reading(flat)})
    text = text_of(page_of(evaluation))
    assert (
        "With 200 labelled frames nothing is readable , neither from the encoder nor from the untrained network" in text
    )
    assert "Labels saved nothing read" in text


def test_a_score_far_below_zero_does_not_flatten_the_others():
    low = {**ENCODER_CURVES, "ball_x": (-9.0, 0.4, 0.6, 0.7, 0.8)}
    found = label_reading(ridge_evaluation(readings={"encoder": reading(low)}), {})
    assert found.variables[0].limits == (-0.25, 1.0)
    assert found.variables[0].series[0].values[0] == pytest.approx(-9.0)
    assert found.variables[1].limits == (0.0, 1.0)
    assert found.sentence == ("No floor was probed in the same way, so ", "labels saved is unknown", ".")


def test_commands_times_and_versions_are_given(page_of):
    text = text_of(page_of(ridge_evaluation(), collect_steps=2000))
    assert "manicap run --game pong --method st-dim --preset quick --collect-steps 2000 --probe-steps 1200" in text
    assert "manicap evaluate runs/run --probe-steps 1200" in text
    assert "Took features 2 s, probe 54 s (2 threads)" in text
    assert "Versions manicap 0.1.0" in text


def test_a_regressed_value_may_be_off_by_a_twentieth_of_its_range():
    # ball_x goes from 20 to 120: 5 % of 100 is 5. difficulty is a name, and exact.
    true = np.array([[20, 0], [120, 1]], np.uint8)
    regressed = np.array([[24.6, np.nan], [118, np.nan]], np.float32)
    rows = np.arange(2)
    found = StatePredictions(("ball_x", "difficulty"), rows, rows, true, true, regressed)
    assert _tolerances(found) == [5, 0]
    assert _tolerances(replace(found, numbers=None)) == [0, 0]


def page_with_labels():
    found = label_reading(ridge_evaluation(), {})
    overall = ScoreRow("Mean", Score(0.7, 0.7, r2=0.6), untrained=Score(0.6, 0.6, r2=0.5))
    note = replace(found, note="Not read: ball_y.")
    return RunPage("Pong", "st-dim", overall, caveat="c", labels=note, warnings=("a",), left_out=("b",))


def test_the_reading_survives_json():
    page = page_with_labels()
    assert from_dict(RunPage, json.loads(json.dumps(to_dict(page)))) == page


def test_hostile_text_adds_no_element():
    plain, hostile = Collector(), Collector()
    plain.feed(build_page(page_with_labels()))
    hostile.feed(build_page(replace_texts(page_with_labels())))
    assert hostile.tags == plain.tags
    assert hostile.addresses == plain.addresses == ["data:,"]


def test_a_band_has_as_many_ends_as_values():
    found = label_reading(ridge_evaluation(), {})
    series = replace(found.curve.series[0], low=(0.0,))
    broken = replace(found, curve=replace(found.curve, series=(series,)))
    with pytest.raises(ValueError, match="needs one value per step, got 5 steps and 1 values of 'this run'"):
        build_page(replace(page_with_labels(), labels=broken))
