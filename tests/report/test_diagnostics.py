import hashlib
import math
from dataclasses import replace

import pytest

from manicap.core.errors import UserError
from manicap.core.results import write_result
from manicap.diagnostics.effective_geometry import Glue
from manicap.diagnostics.groups import GroupCapacity
from manicap.diagnostics.runs import HeadFindings, RunDiagnosis
from manicap.diagnostics.trend import CapacityTrend
from manicap.domains.play.diagnosis import PlayDiagnosisConfig
from manicap.report.contents import Diagnosis, Fact
from manicap.report.diagnostics import capacity_rows, measure_rows, observation_charts, read_diagnosis
from manicap.report.page import build_page
from manicap.train.logs import DIAGNOSTICS, LogFile
from manicap.train.record import RunRecord

FLAT = CapacityTrend((10.0, 20.0, 40.0), (0.31, 0.3, 0.2954), 0.29, (0.28, 0.3001))
GLUE = Glue(0.2954, 0.01, 3.0, 1.1, 0.8, 0.1, 0.2, 0.05, 1.0)
RESULT = RunDiagnosis(
    domain="atari",
    subject="pong",
    method="dim-c+",
    seed=0,
    encoder="abc",
    width=3456,
    config=PlayDiagnosisConfig(),
    measures={"effective_rank": 82.674, "decay_exponent": math.nan, "effective_rank_centered": 1.0},
    capacities={"ball_x": GroupCapacity(0.1772, 1.26, 8.94, 4, 1, 0.7, GLUE, FLAT)},
    heads=HeadFindings(notes=["no heads"]),
)


def test_a_measure_that_a_run_lacks_is_a_dash_and_an_undefined_one_says_so():
    other = replace(RESULT, measures={"head_cosine": 0.5}, capacities={})
    rows = dict(measure_rows([RESULT, other]))
    assert rows["effective rank (RankMe)"] == ["82.67", "–"]
    assert rows["eigenvalue decay (alpha)"] == ["undefined", "–"]
    assert rows["heads: mean cosine"] == ["–", "0.5"]
    assert capacity_rows([RESULT, other]) == [("ball_x", ["0.295, 0.290 (0.280 to 0.300)", "–"])]


def test_the_page_shows_what_lies_beside_the_run(tmp_path, example):
    assert read_diagnosis(tmp_path) is None
    RESULT.write(tmp_path / "diagnostics.json")
    (tmp_path / "nerve.svg").write_text("<svg/>")
    nerve = {"nerve": {"betti_numbers": [1, 1], "threshold": 0.05}}
    write_result(tmp_path / "nerve.json", {**nerve, "drawing_sha256": hashlib.sha256(b"<svg/>").hexdigest()})
    found = read_diagnosis(tmp_path)
    assert found.measures[0] == Fact("effective rank (RankMe)", "82.67")
    assert found.nerve_caption == "Charts and their Čech nerve: Betti numbers 1, 1 at threshold 0.05"
    page = build_page(replace(example, diagnosis=found))
    assert "rank collapse" in page
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+"' in page
    (tmp_path / "nerve.svg").write_text("<svg></svg>")
    with pytest.raises(UserError, match=r"nerve\.svg is not the drawing that was written; draw it again"):
        read_diagnosis(tmp_path)


def test_hostile_text_in_a_diagnosis_stays_text(example):
    hostile = "<script>alert(1)</script>"
    diagnosis = Diagnosis(
        (Fact(hostile, hostile),), (Fact(hostile, hostile),), (hostile,), (hostile,), "<svg/>", hostile
    )
    assert "<script>alert" not in build_page(replace(example, diagnosis=diagnosis))


def test_what_was_measured_while_training_becomes_curves(tmp_path):
    RunRecord({}, log_every=20).write(tmp_path)
    assert observation_charts(tmp_path) == ()
    log = LogFile(tmp_path / DIAGNOSTICS)
    log.write({"step": 5, "spread": 0.5, "alarm": "..."})
    log.write({"step": 10, "spread": 0.25})
    log.close()
    RunRecord({}, log_every=20, diagnose_every=5, logs={DIAGNOSTICS: log.sha256}).write(tmp_path)
    (chart,) = observation_charts(tmp_path)
    assert (chart.title, chart.series[0].steps, chart.series[0].values) == ("Batch: spread", (5, 10), (0.5, 0.25))


def test_the_shares_of_the_regularizer_are_one_chart(tmp_path):
    log = LogFile(tmp_path / DIAGNOSTICS)
    log.write({"step": 5, "regularizer_loss_share": 0.02, "regularizer_gradient_share": 0.5})
    log.write({"step": 10, "regularizer_loss_share": 0.03, "regularizer_gradient_share": 0.6})
    log.close()
    RunRecord({}, log_every=20, diagnose_every=5, logs={DIAGNOSTICS: log.sha256}).write(tmp_path)
    (chart,) = observation_charts(tmp_path)
    assert [series.values for series in chart.series] == [(0.02, 0.03), (0.5, 0.6)]
    assert [series.name for series in chart.series] == ["the loss", "its gradient on the encoder"]
