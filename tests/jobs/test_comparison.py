"""Runs compared by what their probe measures: labels saved by ridge, F1 by a probe without label curves."""

import re
from dataclasses import replace

import pytest

import manicap
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.result import RunResult
from manicap.jobs.comparison import measured
from manicap.jobs.probing import probe
from manicap.jobs.run import run_job
from manicap.statistics.comparison import compare
from manicap.train.setup import Execution
from tests.algorithms.small import small_config


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    """The untrained network, probed with ridge, its layers by a few frames."""
    config, evaluation = small_config("random-cnn"), AtariEvaluationConfig(probe_steps=640, probe="ridge")
    runs_dir, execution = tmp_path_factory.mktemp("runs"), Execution(threads=1, quiet=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manicap.probing.play_bench.LABELS", 60)
        patch.setattr("manicap.probing.play_bench.TEST_FRAMES", 20)
        (run_dir,) = run_job(config, evaluation, (0,), execution, runs_dir, data_dir)
    return run_dir


def test_labels_saved_come_first_and_the_metric_is_said(run, data_dir, capsys):
    flags = ["--data-dir", str(data_dir), "--threads", "1"]
    main(["compare", str(run), *flags])
    text = capsys.readouterr().out
    assert text.startswith("labels_saved, ")
    assert "probe ridge" in text
    # It is the untrained network: it needs as many labels as itself.
    assert re.search(r"^random-cnn +1 +1 +8 +1 x ", text, flags=re.M)
    main(["compare", str(run), "--metric", "r2", *flags])
    assert capsys.readouterr().out.startswith("r2, ")
    assert manicap.compare(run, data_dir=data_dir, threads=1, quiet=True).metric == "labels_saved"


def test_a_probe_without_label_curves_is_compared_by_f1(run, data_dir, capsys):
    flags = ["--data-dir", str(data_dir), "--threads", "1"]
    main(["compare", str(run), "--probe", "knn", *flags])
    assert capsys.readouterr().out.startswith("f1, ")
    with pytest.raises(SystemExit):
        main(["compare", str(run), "--probe", "knn", "--metric", "labels_saved", *flags])
    assert "the results have no labels_saved, only f1, accuracy, macro_f1" in capsys.readouterr().err
    assert manicap.compare(run, data_dir=data_dir, threads=1, quiet=True, probe="knn").metric == "f1"


def test_results_of_two_probes_are_refused_together(run, data_dir):
    ridge = measured(RunResult.read(run / "result.json"))
    other = measured(probe(run, AtariEvaluationConfig(probe_steps=640, probe="knn"), data_dir, threads=1, quiet=True))
    with pytest.raises(UserError, match=r"they differ in probe: knn \(other\), ridge \(random-cnn\)"):
        compare([ridge, replace(other, method="other")])


def test_bounds_are_those_of_the_untrained_floor(run):
    evaluation = RunResult.read(run / "result.json").evaluation
    # A curve reaches its own score where it is: no bound.
    assert evaluation.bounds == {}
    curve = evaluation.readings["untrained"]
    low = {name: tuple(tuple(-1.0 for _ in draw) for draw in found) for name, found in curve.curves.items()}
    evaluation.readings["untrained"] = replace(curve, curves=low)
    # Below knowing nothing at every count: nothing is counted, nothing is hidden.
    assert evaluation.label_curves["untrained"] == dict.fromkeys(curve.counts, 0.0)
    assert list(evaluation.label_curves["encoder"]) == list(curve.counts)
    assert evaluation.bounds == {"labels_saved": "at least"}
