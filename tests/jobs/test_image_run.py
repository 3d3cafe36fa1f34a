"""The job on images on a small scale: real training, real probes."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.core.printing import plain_console
from manicap.diagnostics.runs import RunDiagnosis
from manicap.domains.base import find_domain
from manicap.domains.images.evaluation_config import ImageEvaluationConfig
from manicap.domains.images.features import ImageEncoder
from manicap.domains.result import RunResult
from manicap.jobs.comparison import measured
from manicap.jobs.probing import probe, result_path
from manicap.jobs.run import run_job
from manicap.probing.feature_cache import remove_features
from manicap.report.pages import job_table, write_page
from manicap.statistics.comparison import compare
from manicap.train.setup import Execution
from tests.image_folder import small_image_config, write_image_folder

EVALUATION = ImageEvaluationConfig(probe_epochs=3, neighbors=20)
EXECUTION = Execution(threads=1, quiet=True)
READ = ("encoder", "untrained")
FLAGS = ["--probe-epochs", "3", "--neighbors", "20", "--threads", "1"]


@pytest.fixture(scope="module")
def job(image_folder, tmp_path_factory):
    """simclr and simclr-c+, two seeds each, trained for 3 steps and probed."""
    runs_dir = tmp_path_factory.mktemp("runs")
    return {
        method: run_job(small_image_config(image_folder, method, max_steps=3), EVALUATION, (0, 1), EXECUTION, runs_dir)
        for method in ("simclr", "simclr-c+")
    }


def test_a_result_carries_what_it_depends_on(job):
    result = RunResult.read(job["simclr-c+"][1] / "result.json")
    assert (result.subject, result.method, result.seed) == ("stripes", "simclr-c+", 1)
    evaluation = result.evaluation
    assert (evaluation.protocol, evaluation.probe, evaluation.width) == ("clean", "linear", 64)
    assert set(evaluation.floors) == {"majority", "untrained"}
    assert result.training.steps == 3
    # Eight test images a class: the accuracy is the mean of the classes'.
    by_class = list(evaluation.scores.classes.values())
    assert evaluation.scores.accuracy == pytest.approx(sum(by_class) / 4, rel=1e-12)


def test_a_second_call_computes_nothing(job, image_folder, monkeypatch):
    before = {path: path.read_bytes() for run_dir in job["simclr"] for path in run_dir.glob("*.json*")}
    monkeypatch.setattr("manicap.train.loop.prepare", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr("manicap.domains.images.domain.evaluate_images", lambda *_: pytest.fail("probed again"))
    config = small_image_config(image_folder, "simclr", max_steps=3)
    assert run_job(config, EVALUATION, (0, 1), EXECUTION, job["simclr"][0].parent) == job["simclr"]
    assert {path: path.read_bytes() for path in before} == before


def test_all_probes_of_a_run_share_its_features(job, monkeypatch):
    run_dir, encoded = job["simclr"][0], []
    monkeypatch.setattr(
        "manicap.domains.images.features.ImageEncoder._encode_blocks",
        lambda self, dataset, quiet, own=ImageEncoder._encode_blocks: (
            encoded.append(dataset.split) or own(self, dataset, quiet)
        ),
    )
    remove_features(run_dir)
    first = probe(run_dir, replace(EVALUATION, probe="knn", neighbors=7), threads=1, quiet=True)
    assert encoded == ["train", "test"] * 2  # the encoder's own, and those of the untrained network
    probe(run_dir, replace(EVALUATION, probe="knn", neighbors=8), threads=1, quiet=True)
    assert len(encoded) == 4
    # The same numbers as from features computed anew.
    remove_features(run_dir)
    result_path(run_dir, replace(EVALUATION, probe="knn", neighbors=7)).unlink()
    again = probe(run_dir, replace(EVALUATION, probe="knn", neighbors=7), threads=1, quiet=True)
    assert len(encoded) == 8
    assert again.evaluation.scores == first.evaluation.scores
    assert again.evaluation.floors == first.evaluation.floors


def test_a_page_says_what_the_probe_was_and_leaves_out_what_means_nothing(job, image_folder, tmp_path, capsys):
    run_dir = tmp_path / job["simclr-c+"][0].name
    shutil.copytree(job["simclr-c+"][0], run_dir)
    page = write_page(run_dir, tmp_path).read_text()
    assert "The probe is trained on labelled training images and sees frozen features." in page
    assert "top-5" not in page  # of four classes
    assert "96 labelled images" in page
    assert "F1 by number of labelled images" in page
    assert "Part of the loss: contrast" in page
    assert "Part of the loss: capacity" in page
    evaluation = replace(EVALUATION, probe="knn")
    config = small_image_config(image_folder, "simclr-c+", max_steps=3)
    run_job(config, evaluation, (0,), EXECUTION, tmp_path)
    page = write_page(run_dir, tmp_path).read_text()
    assert "The 20 training images with the nearest frozen features vote on the class of a test image." in page
    assert "is trained on" not in page
    assert "labelled images" not in page
    plain_console().print(job_table([RunResult.read(run_dir / "result.json")]))
    assert "first five" not in capsys.readouterr().out


def test_the_table_names_the_probe_of_every_number(job, capsys):
    results = [RunResult.read(run_dir / "result.json") for run_dir in job["simclr"]]
    plain_console().print(job_table(results))
    text = " ".join(capsys.readouterr().out.split())
    assert "linear probe on 64 features" in text
    # With 96 training images both the comparison and the last point are at 96 labels. F1 over seeds, by hand.
    found = [result.evaluation.readings[name].curves["class"][0][-1] for name in READ for result in results]
    for first, second in (found[:2], found[2:]):
        assert f"{(first + second) / 2:.3f}" in text
    assert text.count("F1, logistic, 96 labels") == 1
    assert "geometric mean over 2 seeds" in text
    assert "F1 and labels saved: a logistic regression fitted to convergence." in text
    plain_console().print(job_table(results[:1]))
    assert "96 labelled images" in " ".join(capsys.readouterr().out.split())


def test_a_changed_folder_does_not_return_the_old_score(tmp_path):
    folder = write_image_folder(tmp_path / "stripes", num_train=8, num_test=2)
    config = small_image_config(folder, "simclr", max_steps=2)
    evaluation = replace(EVALUATION, neighbors=5, probe="knn")

    def job():
        return run_job(config, evaluation, (0,), EXECUTION, tmp_path / "runs", tmp_path)[0]

    before = RunResult.read(job() / "result.json").evaluation
    # Test images: the encoder is still the run's, and is probed on what is there now.
    picture = folder / "test" / "down" / "000.png"
    old = picture.read_bytes()
    shutil.copy(folder / "test" / "across" / "000.png", picture)
    after = RunResult.read(job() / "result.json").evaluation
    assert after.store != before.store
    picture.write_bytes(old)
    assert RunResult.read(job() / "result.json").evaluation.scores == before.scores
    # Training images: the run was trained on others.
    shutil.copy(folder / "train" / "across" / "000.png", folder / "train" / "down" / "000.png")
    with pytest.raises(UserError, match=r"the data of .* has changed since the run was trained on it \(fingerprint"):
        job()
    # Without its images a run keeps the result that names them.
    shutil.rmtree(folder)
    run_dir = next((tmp_path / "runs").iterdir())
    assert probe(run_dir, evaluation, tmp_path, 1, quiet=True).evaluation.store == before.store


def test_a_damaged_result_is_measured_again(job, tmp_path, capsys):
    run_dir = tmp_path / "run"
    shutil.copytree(job["simclr"][0], run_dir)
    path = result_path(run_dir, EVALUATION)
    expected = RunResult.read(path).evaluation
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    found = probe(run_dir, EVALUATION, tmp_path, 1, quiet=True).evaluation
    assert (found.scores, found.readings) == (expected.scores, expected.readings)
    assert "measuring again: " in capsys.readouterr().err
    assert RunResult.read(path).evaluation.scores == expected.scores


def test_compare_ranks_image_runs_and_refuses_what_differs(job, capsys):
    main(["compare", *(str(path) for method in job for path in job[method]), *FLAGS])
    text = capsys.readouterr().out
    assert text.startswith("labels_saved, probe_input output, protocol clean")
    assert "simclr-c+" in text
    assert "2 pairs" in text
    main(["compare", *(str(path) for method in job for path in job[method]), *FLAGS, "--metric", "accuracy"])
    assert capsys.readouterr().out.startswith("accuracy, probe_input output, protocol clean")
    main(["compare", str(job["simclr"][0]), "--probe", "knn", *FLAGS])
    assert capsys.readouterr().out.startswith("accuracy, ")  # neighbours have no label curves
    one = measured(RunResult.read(job["simclr"][0] / "result.json"))
    other = replace(one, method="other", probed={**one.probed, "protocol": "tsai2021"})
    with pytest.raises(UserError, match="they differ in protocol"):
        compare([one, other], metric="accuracy")
    with pytest.raises(UserError, match="no f1, only labels_saved, accuracy"):
        compare([one], metric="f1")


def test_evaluate_takes_the_flags_of_image_runs(job, capsys):
    main(["evaluate", str(job["simclr"][0]), "--probe", "knn", "--neighbors", "20", "--threads", "1"])
    assert "stripes: protocol clean, knn probe on 64 features" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["evaluate", str(job["simclr"][0]), "--probe-steps", "100"])


def test_resume_finds_an_image_run_finished(job, capsys):
    main(["resume", str(job["simclr"][0])])
    assert "was already finished" in capsys.readouterr().out


def test_the_2021_protocol_needs_the_weights_that_it_chooses(job, image_folder, tmp_path):
    protocol = {"protocol": "tsai2021", "probe_epochs": 2}
    with pytest.raises(UserError, match="did not keep; train with: manicap run --dataset DATASET --protocol"):
        probe(job["simclr"][0], ImageEvaluationConfig(**protocol), threads=1, quiet=True)
    config = small_image_config(image_folder, "simclr", protocol="tsai2021", weights="best", check_every=1)
    (run_dir,) = run_job(config, ImageEvaluationConfig(**protocol), (0,), EXECUTION, tmp_path)
    evaluation = RunResult.read(run_dir / "result.json").evaluation
    assert evaluation.probe_options["statistics"] == "moving"
    assert evaluation.encoder.startswith(json.loads((run_dir / "encoder.json").read_text())["sha256"]["chosen"])


def test_the_page_is_built_from_the_files_alone(job, image_folder):
    text = write_page(job["simclr-c+"][0], image_folder).read_text()
    assert "stripes: simclr-c+" in text
    assert text.count('class="asked"') == 24
    assert text == write_page(job["simclr-c+"][0], image_folder).read_text()


def test_published_numbers_are_the_printed_ones():
    def printed(dataset):
        return {entry.method: entry.scores["accuracy"][0] for entry in find_domain("images").published(dataset)}

    # Table 2 of arXiv 2405.13848, read by eye.
    assert printed("cifar10")["barlow-twins-c+"] == 0.922
    assert printed("stl10") == {
        "simclr": 0.889,
        "simclr-c+": 0.912,
        "barlow-twins": 0.88,
        "barlow-twins-c+": 0.906,
    }
    assert printed("stripes") == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["images", "--method", "st-dim"], "st-dim learns from frames, but images yield views"),
        (
            ["run", "--game", "pong", "--method", "simclr"],
            "simclr learns from views, but Atari games yield frames; 'manicap methods' shows",
        ),
        (["pretrain", "--game", "pong", "--method", "mmcr"], "mmcr learns from views, but Atari games yield frames"),
        (["images", "--dataset", "cifar1"], "unknown dataset 'cifar1'; did you mean 'cifar10'?"),
        (["images", "--batch-size", "1"], "batch_size must be at least 2"),
        (["images", "--probe-epochs", "0"], "probe_epochs must be at least 1, got 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_diagnose_measures_views_classes_and_heads_of_image_runs(job, capsys):
    runs = [str(job[method][0]) for method in ("simclr", "simclr-c+")]
    main(["diagnose", *runs, "--views", "2", "--threads", "1"])
    text = capsys.readouterr().out
    assert "simclr-c+" in text
    assert "stripes" in text
    for run in runs:
        result = RunDiagnosis.read(Path(run) / "diagnostics.json")
        measures = result.measures
        # Of the 32 test images, half are the candidates of the bound.
        assert measures["information_bound"] <= measures["information_ceiling"] == pytest.approx(math.log(16))
        assert 1 <= measures["effective_rank"] <= result.width == 64
        assert 0 < result.capacities["classes"].capacity <= 2
        assert result.capacities["classes"].manifolds == 4
        assert "Representation" in (Path(run) / "report.html").read_text()
    # Two heads: the similarity of their one pair, as they were after the last step.
    assert -1 <= measures["head_cosine"] <= 1
    assert "as they were after step 3" in result.notes[0]
