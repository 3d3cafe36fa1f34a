"""The main job on a small scale: real games, real training, real probes."""

import io
import json
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from manicap.atari.convert import write_gray_store
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig, store_path
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.domains.atari.domain import AtariOptions
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.result import RunResult
from manicap.jobs.comparison import measured
from manicap.jobs.probing import probe
from manicap.jobs.run import run_job
from manicap.report.pages import job_table, write_page
from manicap.statistics.comparison import compare
from manicap.train.config_file import read_run_config
from manicap.train.record import read_record
from manicap.train.setup import Execution
from tests.algorithms.small import small_config

EVALUATION = AtariEvaluationConfig(probe_steps=640, probe="knn")
EXECUTION = Execution(threads=1, quiet=True)


@pytest.fixture(scope="module")
def job(data_dir, tmp_path_factory):
    """st-dim and random-cnn, two seeds each, trained for 3 steps and probed."""
    runs_dir = tmp_path_factory.mktemp("runs")
    found = {}
    for method in ("st-dim", "random-cnn"):
        config = small_config(method, max_steps=3)
        found[method] = run_job(config, EVALUATION, (0, 1), EXECUTION, runs_dir, data_dir)
    return found


def test_a_run_ends_with_its_files(job):
    for run_dir in job["st-dim"]:
        names = {path.name for path in run_dir.iterdir()}
        assert {"config.toml", "metrics.jsonl", "encoder.safetensors", "encoder.json", "result.json"} <= names


def test_a_result_carries_what_it_depends_on(job):
    result = RunResult.read(job["st-dim"][1] / "result.json")
    assert (result.subject, result.method, result.seed) == ("pong", "st-dim", 1)
    evaluation = result.evaluation
    assert (evaluation.protocol, evaluation.annotation_set, evaluation.width) == ("fixed", "corrected", 8)
    assert set(evaluation.floors) == {"majority", "untrained"}
    assert result.training.steps == 3
    # The mean over categories is the mean of the categories' F1.
    by_category = [entry.f1 for entry in evaluation.scores.categories.values()]
    assert evaluation.scores.f1 == pytest.approx(sum(by_category) / len(by_category), rel=1e-12)


def test_an_untrained_network_scores_exactly_its_own_floor(job):
    # random-cnn is the untrained network, so both were measured on the same features.
    evaluation = RunResult.read(job["random-cnn"][0] / "result.json").evaluation
    assert evaluation.scores == evaluation.floors["untrained"]
    trained = RunResult.read(job["st-dim"][0] / "result.json").evaluation
    assert trained.scores != trained.floors["untrained"]


def test_a_second_call_computes_nothing(job, data_dir, monkeypatch):
    before = {path: path.read_bytes() for run_dir in job["st-dim"] for path in run_dir.glob("*.json*")}
    monkeypatch.setattr("manicap.train.loop.prepare", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr("manicap.domains.atari.domain.AtariDomain.evaluate", lambda *_: pytest.fail("probed again"))
    config = small_config("st-dim", max_steps=3)
    assert run_job(config, EVALUATION, (0, 1), EXECUTION, job["st-dim"][0].parent, data_dir) == job["st-dim"]
    assert {path: path.read_bytes() for path in before} == before


def test_another_way_of_probing_is_measured_beside_the_first(job, data_dir):
    run_dir = job["st-dim"][0]
    result = probe(run_dir, replace(EVALUATION, probe_input="backbone"), data_dir, 1, quiet=True)
    assert result.evaluation.width == 3456
    assert RunResult.read(run_dir / "result.json").evaluation.width == 8
    assert len(list((run_dir / "results").glob("*.json"))) == 2


def test_the_page_is_built_from_the_files_alone(job, data_dir):
    path = write_page(job["st-dim"][0], data_dir)
    text = path.read_text()
    assert "Pong: st-dim" in text
    # Table 1 of arXiv 2405.13848: ST-DIM on Pong 0.81.
    assert "0.81" in text
    assert text == write_page(job["st-dim"][0], data_dir).read_text()


def change_evaluation(run_dir, **changes):
    """As if the run's own result said something else."""
    result = RunResult.read(run_dir / "result.json")
    result.evaluation = replace(result.evaluation, **changes)
    result.write(run_dir / "result.json")


def test_a_page_says_what_the_probe_was_and_what_was_trained(job, data_dir, tmp_path):
    texts = {}
    for method, name in (("st-dim", "linear"), ("st-dim", "knn"), ("random-cnn", "logistic")):
        run_dir = tmp_path / f"{method}-{name}"
        shutil.copytree(job[method][0], run_dir)
        change_evaluation(run_dir, probe=name)
        texts[name] = write_page(run_dir, data_dir).read_text()
    assert "Probes are linear and see frozen features." in texts["linear"]
    assert "Probes are linear" not in texts["knn"] + texts["logistic"]
    assert "The training frames with the nearest frozen features vote on the values of a frame." in texts["knn"]
    assert "nothing: the network keeps its initial weights" in texts["logistic"]


def test_another_store_does_not_return_the_old_score(job, data_dir, tmp_path):
    stores = tmp_path / "data"
    config = read_run_config(job["st-dim"][0])
    probe_store = StoreConfig(config.game, EVALUATION.probe_steps, 0, "probe")
    for store in (config.store_config, probe_store):
        shutil.copytree(store_path(store, data_dir), store_path(store, stores))
    runs_dir = tmp_path / "runs"
    run_dir = runs_dir / config.run_name
    shutil.copytree(job["st-dim"][0], run_dir)
    before = probe(run_dir, EVALUATION, stores, 1, quiet=True)
    assert before == probe(job["st-dim"][0], EVALUATION, data_dir, 1, quiet=True)

    def darken(store):
        """As another version of the emulator might draw it."""
        found = open_store(store_path(store, stores))
        write_gray_store(found.path, store, [np.array(found.frames) // 2], np.array(found.ram), found.episodes)

    darken(probe_store)
    assert probe(run_dir, EVALUATION, stores, 1, quiet=True).evaluation.store != before.evaluation.store
    darken(config.store_config)
    with pytest.raises(UserError, match=r"the data of .* has changed since the run was trained on it"):
        run_job(config, EVALUATION, (config.seed,), EXECUTION, runs_dir, stores)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--annotation-set", "corected"], "did you mean 'corrected'?"),
        (["--width", "0"], "width must be at least 1, got 0"),
        (["--width", "5000"], "width must be at most"),
        (["--probe-steps", "-4"], "probe_steps must be at least 8, got -4"),
    ],
)
@pytest.mark.parametrize("command", ["run", "evaluate", "compare"])
def test_a_mistake_about_probing_is_told_before_any_work(
    job, data_dir, tmp_path, monkeypatch, capsys, command, flags, sentence
):
    monkeypatch.setattr("manicap.domains.atari.stores.collect", lambda *_, **__: pytest.fail("collected"))
    monkeypatch.setattr("manicap.probing.play_bench.extract_all", lambda *_, **__: pytest.fail("encoded"))
    places = ["--data-dir", str(data_dir)]
    what = {
        "run": ["--game", "pong", "--method", "st-dim", "--runs-dir", str(tmp_path)],
        "evaluate": [str(job["st-dim"][0])],
        "compare": [str(path) for path in job["st-dim"]],
    }[command]
    with pytest.raises(SystemExit) as caught:
        main([command, *what, *flags, *places])
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_page_shows_no_frames_of_another_store(job, data_dir, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(job["st-dim"][0], run_dir)
    assert 'id="player"' in write_page(run_dir, data_dir).read_text()
    change_evaluation(run_dir, store="another")
    assert 'id="player"' not in write_page(run_dir, data_dir).read_text()


def test_compare_prints_intervals_and_refuses_to_rank_different_widths(job, data_dir, capsys):
    paths = [str(path) for method in job for path in job[method]]
    flags = ["--probe-steps", "640", "--probe", "knn", "--data-dir", str(data_dir), "--threads", "1"]
    main(["compare", *paths, *flags])
    text = capsys.readouterr().out
    assert "st-dim" in text
    assert "random-cnn" in text
    assert "IQM" in text
    narrow = measured(RunResult.read(job["st-dim"][0] / "result.json"))
    with pytest.raises(UserError, match="width"):
        compare([narrow, replace(narrow, method="other", width=256)])


def test_compare_probes_as_the_runs_were_probed_unless_told(job, data_dir, tmp_path, capsys):
    run_dirs = [*job["st-dim"], *job["random-cnn"]]
    before = {path: path.read_bytes() for run_dir in run_dirs for path in run_dir.rglob("*.json")}
    main(["compare", *map(str, run_dirs), "--data-dir", str(data_dir), "--threads", "1"])
    assert "probe_steps 640, protocol fixed, annotation_set corrected, probe knn" in capsys.readouterr().out
    assert {path: path.read_bytes() for run_dir in run_dirs for path in run_dir.rglob("*.json")} == before

    shutil.copytree(run_dirs[0], other := tmp_path / "other")
    result = RunResult.read(other / "result.json")
    result.evaluation_config = replace(result.evaluation_config, probe="logistic")
    result.write(other / "result.json")
    with pytest.raises(SystemExit):
        main(["compare", str(run_dirs[1]), str(other), "--data-dir", str(data_dir)])
    error = capsys.readouterr().err
    assert "probed in different ways: probe knn" in error
    assert "choose how to probe all of them: --probe" in error
    main(["compare", str(run_dirs[1]), str(other), "--probe", "knn", "--data-dir", str(data_dir), "--threads", "1"])
    assert "st-dim" in capsys.readouterr().out


def test_what_cannot_be_ranked_is_refused_before_anything_is_probed(job, tmp_path, capsys):
    runs = [str(path) for method in job for path in job[method]]
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(runs[0], elsewhere)
    text = (elsewhere / "config.toml").read_text()
    (elsewhere / "config.toml").write_text(text.replace('game = "pong"', 'game = "breakout"'))
    begun = read_record(elsewhere)
    replace(begun, config=begun.config | {"game": "breakout"}).write(elsewhere)
    empty = tmp_path / "data"
    for arguments, message in (
        ([*runs, str(elsewhere)], "they differ in games: random-cnn has pong, st-dim has breakout, pong"),
        ([*runs, "--width", "9"], "width must be at most the 8 features of"),
        ([*runs, "--baseline", "dim"], "unknown method 'dim'"),
        ([*runs, runs[0]], "st-dim on pong with seed 0 is given twice"),
    ):
        with pytest.raises(SystemExit):
            main(["compare", *arguments, "--probe-steps", "800", "--data-dir", str(empty)])
        assert message in capsys.readouterr().err
    assert not empty.exists()


def test_probes_of_a_seed_may_have_a_store_of_their_own(job, data_dir):
    shared, own = (replace(EVALUATION, probe_store=name) for name in ("shared", "per seed"))
    assert [shared.store_config("pong", seed).seed for seed in (0, 1)] == [0, 0]
    assert [own.store_config("pong", seed).seed for seed in (0, 1)] == [0, 1]
    stores = {
        name: probe(job["random-cnn"][1], how, data_dir, 1, quiet=True).evaluation.store
        for name, how in (("shared", shared), ("own", own))
    }
    assert stores["shared"] == RunResult.read(job["random-cnn"][0] / "result.json").evaluation.store
    assert stores["own"] != stores["shared"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annotation_set": "corected"}, "unknown annotation set 'corected'; did you mean 'corrected'?"),
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"width": 9}, "width must be at most the 8 features of st-dim, got 9"),
        ({"probe_steps": 64}, "collect more steps"),
    ],
)
def test_what_is_wrong_with_the_probing_is_said_before_the_training(changes, message, data_dir, tmp_path):
    with pytest.raises(UserError, match=re.escape(message)):
        run_job(small_config("st-dim"), replace(EVALUATION, **changes), (0,), EXECUTION, tmp_path, data_dir)
    assert not list(tmp_path.iterdir())


def test_compare_of_a_directory_that_is_no_run_says_so(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["compare", str(tmp_path)])
    assert caught.value.code == 2
    assert f"no finished run at {tmp_path}" in capsys.readouterr().err


def test_a_converged_probe_stands_beside_the_protocols(job, data_dir, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(job["st-dim"][0], run_dir)
    result = RunResult.read(run_dir / "result.json")
    own = result.evaluation
    untrained, scores = (
        replace(each, overall=replace(each.overall, f1=f1))
        for each, f1 in ((own.floors["untrained"], 0.4321), (own.scores, 0.1234))
    )
    result.beside["converged"] = replace(own, scores=scores, floors={**own.floors, "untrained": untrained})
    result.write(run_dir / "result.json")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(job_table([result]))
    (row,) = [line for line in console.export_text().splitlines() if "converged" in line]
    assert "0.123" in row
    assert "0.432" in row
    page = write_page(run_dir, data_dir).read_text()
    assert "Mean, converged probe" in page
    assert "0.12" in page


def test_the_supervised_ceiling_is_trained_at_the_same_budget_and_shown_beside(job, data_dir, tmp_path, capsys):
    run_dir = job["st-dim"][0]
    config = read_run_config(run_dir)
    shutil.copytree(run_dir, tmp_path / config.run_name)

    options = AtariOptions(ceiling=True)
    run_job(config, EVALUATION, (config.seed,), EXECUTION, tmp_path, data_dir, options)

    (ceiling,) = tmp_path.glob("pong-supervised-*")
    trained = read_run_config(ceiling)
    assert (trained.max_steps, trained.collect_steps) == (config.max_steps, config.collect_steps)
    result = RunResult.read(tmp_path / config.run_name / "result.json")
    alone = RunResult.read(next((ceiling / "results").glob("*.json")))
    assert result.beside["supervised"].scores == alone.evaluation.scores
    assert alone.method == "supervised"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(job_table([result]))
    (row,) = [line for line in console.export_text().splitlines() if "supervised" in line]
    assert f"{result.beside['supervised'].scores.f1:.3f}" in row
    assert ">supervised</th>" in write_page(tmp_path / config.run_name, data_dir).read_text()

    flags = ["--probe-steps", "640", "--probe", "knn", "--data-dir", str(data_dir), "--threads", "1"]
    main(["evaluate", str(run_dir), "--beside", str(ceiling), *flags])
    assert "supervised" in capsys.readouterr().out


@pytest.mark.slow  # two processes that import everything
def test_under_torchrun_the_first_process_alone_probes_and_shows(data_dir, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    sizes = ["--collect-steps", "640", "--batch-size", "6", "--max-steps", "2", "--units", "8", "--probe-steps", "640"]
    places = ["--runs-dir", str(tmp_path), "--data-dir", str(data_dir), "--threads", "1", "--device", "cpu"]
    job = ["-m", "manicap", "run", "--game", "pong", "--method", "st-dim", "--seeds", "0", "1", "--probe", "knn"]
    answer = subprocess.run([*launcher, *job, *sizes, *places], capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    # Two seeds, each trained by both processes and probed by one: a page each, one table.
    assert answer.stdout.count("page: ") == 2
    assert answer.stdout.count("Not the paper's setting") == 1
    assert answer.stderr.count(": training") == 2
    runs = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert len(runs) == 2
    for run_dir in runs:
        assert json.loads((run_dir / "encoder.json").read_text())["identity"]["processes"] == 2
        assert (run_dir / "report.html").is_file()
