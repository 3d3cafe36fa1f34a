"""Diagnostics of small trained runs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.diagnostics.runs import BATCH, RunDiagnosis, window_pairs
from manicap.domains.play.diagnosis import PlayDiagnosisConfig, own_bounds
from manicap.jobs.diagnosis import diagnose_run
from manicap.jobs.nerve import run_membership
from manicap.train.loop import pretrain
from manicap.train.setup import Execution
from tests.algorithms.small import small_config, small_settings

CONFIG = PlayDiagnosisConfig(probe_steps=640, windows=128, window_frames=4, points=10, values=4)


@pytest.fixture(scope="module")
def runs(data_dir, tmp_path_factory):
    runs_dir = tmp_path_factory.mktemp("runs")
    execution = Execution(threads=1, quiet=True)
    names = ("dim-uac+", "dim-c+")
    return {x: pretrain(small_config(x, max_steps=3), runs_dir / x, execution, data_dir) for x in names}


@pytest.fixture(scope="module")
def results(runs, data_dir):
    return {name: diagnose_run(run, CONFIG, data_dir, threads=1, quiet=True) for name, run in runs.items()}


def test_a_diagnosis_is_kept_beside_the_run(runs, results):
    kept = RunDiagnosis.read(runs["dim-uac+"] / "diagnostics.json")
    assert kept == results["dim-uac+"]
    assert kept.config.windows == 128


def test_bounds_hold_on_real_features(results):
    for result in results.values():
        measures = result.measures
        assert 1 <= measures["effective_rank"] <= 256
        assert measures["information_bound"] <= measures["information_ceiling"] == pytest.approx(np.log(BATCH))
        assert measures["own_bound_global"] <= measures["own_ceiling"] == pytest.approx(np.log(6))
        assert measures["centroid_norm"] <= measures["centroid_bound"]
        assert all(0 < entry.capacity <= 2 for entry in result.capacities.values())
        assert set(result.capacities) >= {"player_y", "ball_x"}


@pytest.mark.parametrize("horizon", [1, 2, 3])
@pytest.mark.parametrize("method", ["st-dim", "dim-c+", "dim-uac+", "global-t-dim", "dim"])
def test_a_critic_that_knows_nothing_has_a_bound_of_zero(method, horizon, monkeypatch):
    # Scores of 0 pick each of K candidates with probability 1/K. Frames t and t + gap of 5 samples of horizon + 1
    # frames: K = 5 (horizon + 1 - gap). `dim` compares a frame with itself: K = 5.
    ceilings = [np.log(5), (np.log(10) + np.log(5)) / 2, (np.log(15) + np.log(10) + np.log(5)) / 3]
    settings = small_settings(method)
    if method != "dim":
        settings = replace(settings, horizon=horizon, directions="both")
    config = small_config(method, batch_size=5, settings=settings)
    built = METHODS[method](settings, MethodContext((1, 84, 84)))
    for name, parameter in built.named_parameters():
        if name.startswith("predictor"):
            torch.nn.init.zeros_(parameter)
    frames = torch.zeros(5, built.frames_per_sample, 1, 84, 84, dtype=torch.uint8)
    parts = {name: float(value.detach()) for name, value in built.loss(Batch(frames)).parts.items()}
    monkeypatch.setattr("manicap.domains.play.diagnosis.read_log", lambda *_: [parts])
    found = own_bounds(Path("run"), config)
    assert found.pop("own_ceiling") == pytest.approx(ceilings[0 if method == "dim" else horizon - 1])
    # float32 rounding of a loss of about 2
    assert list(found.values()) == pytest.approx([0] * len(found), abs=1e-6)
    assert "own_bound_global" in found


def test_heads_come_from_the_encoder_or_from_the_training_parts(results):
    assert results["dim-uac+"].heads.notes == []
    assert sum(results["dim-uac+"].heads.matrices["chart_usage"]) == pytest.approx(1)
    assert "as they were after step 3" in results["dim-c+"].notes[0]
    assert np.diag(results["dim-c+"].heads.matrices["head_cosine"]) == pytest.approx([1, 1])


def test_without_the_training_parts_the_heads_are_said_to_be_gone(runs, data_dir, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(runs["dim-c+"], copy)
    (copy / "training.safetensors").unlink()
    result = diagnose_run(copy, CONFIG, data_dir, threads=1, quiet=True)
    assert "training.safetensors, which held them, was removed" in result.notes[0]
    assert "head_cosine" not in result.measures


def test_the_command_compares_runs(runs, data_dir, capsys):
    flags = [
        "--probe-steps",
        "640",
        "--windows",
        "128",
        "--window-frames",
        "4",
        "--points",
        "10",
        "--values",
        "4",
        "--threads",
        "1",
    ]
    main(["diagnose", *map(str, runs.values()), "--data-dir", str(data_dir), *flags])
    shown = capsys.readouterr().out
    assert "effective rank (RankMe)" in shown
    assert "player_y" in shown
    # DIM-C+ after three steps has no alarm; dim-uac+ puts every frame into one chart or has none either.
    assert "fraction of dead units" in shown
    assert "no sign of collapse" not in shown


def test_too_few_windows_are_refused_with_a_way_out(runs, data_dir):
    with pytest.raises(UserError, match="fewer --windows or more --probe-steps"):
        diagnose_run(runs["dim-c+"], PlayDiagnosisConfig(probe_steps=640, windows=5000), data_dir, quiet=True)


def test_the_pairs_of_a_batch_come_from_different_windows():
    # Windows of 5 frames, numbered by window: pairs (0, 1) and (2, 3) of each, the fifth frame left over.
    groups = np.repeat(np.arange(BATCH + 3), 5).reshape(-1, 5, 1)
    first, second = window_pairs(groups)
    assert np.array_equal(first, second)
    assert len(first) == 2 * BATCH
    assert all(len(np.unique(batch)) == BATCH for batch in first.reshape(2, BATCH))


def test_the_membership_of_a_run_is_drawn_as_a_nerve(runs, data_dir, capsys):
    features, membership = run_membership(runs["dim-uac+"], 640, data_dir, quiet=True)
    assert len(features) == len(membership) > 100
    assert membership.sum(1) == pytest.approx(np.ones(len(membership)), abs=1e-5)
    main(["nerve", str(runs["dim-uac+"]), "--data-dir", str(data_dir), "--probe-steps", "640", "--threads", "1"])
    assert "Betti numbers 1, 0, 0 at threshold 0.05" in capsys.readouterr().out
    assert (runs["dim-uac+"] / "nerve.svg").read_text().startswith("<?xml")
    assert json.loads((runs["dim-uac+"] / "nerve.json").read_text())["nerve"]["threshold"] == 0.05


def test_a_run_without_charts_has_no_nerve(runs, data_dir, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["nerve", str(runs["dim-c+"]), "--data-dir", str(data_dir), "--probe-steps", "640"])
    assert stopped.value.code == 2
    assert "no chart membership: it was trained with dim-c+" in capsys.readouterr().err
