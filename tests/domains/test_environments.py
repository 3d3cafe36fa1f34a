"""The whole job on an environment of the user's own: recorded, trained, probed, shown; and on a store of its frames."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

import manicap
from manicap.algorithms import METHODS
from manicap.bench.cell import Job, run_cell
from manicap.bench.grid import build_grid
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.domains.base import find_domain
from manicap.play.subset import divided
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from manicap.probing.state_result import StatePredictions
from manicap.report.pages import write_page
from manicap.train.setup import Execution
from tests.algorithms.small import ATARI
from tests.algorithms.small import SMALL as SMALL_SETTINGS
from tests.environments.worlds import Walk

WALK = "tests.environments.worlds:Walk"
QUIET = Execution(threads=1, quiet=True)
SMALL = {"collect_steps": 600, "max_steps": 3, "batch_size": 6, "units": 8, "lanes": 4}
PROBE_STEPS = 160


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("walk")


@pytest.fixture(scope="module")
def result(place):
    [found] = manicap.run(
        "st-dim",
        env=WALK,
        runs_dir=place,
        data_dir=place,
        execution=QUIET,
        evaluation={"probe_steps": PROBE_STEPS},
        **SMALL,
    )
    return found


@pytest.fixture(scope="module")
def run_dir(result, place):
    return place / result.config.run_name


def test_its_result_says_what_was_decoded_and_from_what(result):
    evaluation = result.evaluation
    assert (result.subject, evaluation.protocol, evaluation.annotation_set) == ("Walk", "plain", "recorded")
    assert evaluation.kinds == {"x": "number", "door": "class", "lit": "class", "speed": "number"}
    assert evaluation.categories == {"state": ("x", "door", "lit", "speed")}
    assert evaluation.view == "colour, 48 x 64"
    floors = {name.partition(" (")[0] for name in evaluation.floors}
    assert floors == {"majority", "untrained", "pixels, random", "pixels, principal"}
    assert result.config.settings.encoder == "fitting"
    assert result.differences_from_paper == ()


def test_numbers_are_read_in_their_own_units(result, run_dir, place):
    """R2 and the error of a real number, from what was predicted, by scikit-learn."""
    predictions = StatePredictions.load(run_dir / "predictions.npz", result.predictions_sha256)
    domain = find_domain("environments")
    store = domain.probe_store(result.config, result.evaluation_config, place)
    labels = np.load(store.path / "labels.npy")
    scores = result.evaluation.scores.variables
    for name in ("x", "speed"):
        v = predictions.variables.index(name)
        true = labels[name][predictions.rows]
        np.testing.assert_allclose(predictions.values[:, v], true)
        assert scores[name].r2 == pytest.approx(r2_score(true, predictions.numbers[:, v]), abs=1e-5)
        assert scores[name].error == pytest.approx(np.abs(true - predictions.numbers[:, v]).mean(), rel=1e-4)
    # The class of a real number is its tenth of all values; that of a whole one counts from the least.
    edges = np.quantile(labels["speed"], np.arange(1, 10) / 10, method="higher")
    v = predictions.variables.index("speed")
    assert np.array_equal(predictions.true[:, v], np.searchsorted(np.unique(edges), predictions.values[:, v], "right"))
    assert scores["door"].r2 is None


def test_the_page_shows_colours_and_values_in_their_own_units(result, run_dir):
    page = (run_dir / "report.html").read_text()
    assert "Walk: st-dim" in page
    assert '"variable":"speed"' in page
    assert "plain" in page
    assert f"--probe-steps {PROBE_STEPS} --plugin {WALK}" in page  # the command that probes it again


def test_a_coordinate_must_be_a_number_that_is_decoded(place):
    for coordinate, sentence in {
        "z:x:0:1": "coordinates: unknown state variable 'z'",
        "door:x:0:1": "door is a class and cannot be a coordinate",
    }.items():
        with pytest.raises(UserError, match=sentence):
            manicap.run("st-dim", env=WALK, runs_dir=place, data_dir=place, evaluation={"coordinates": (coordinate,)})
    evaluation = {"coordinates": ("x:x:0:1",), "annotation_set": "play"}
    with pytest.raises(UserError, match="coordinates require annotation_set recorded"):
        manicap.run("st-dim", env=WALK, runs_dir=place, data_dir=place, evaluation=evaluation)


def test_the_same_run_is_probed_diagnosed_and_compared_as_games_are(result, run_dir, place, capsys):
    # As it was probed: ridge, on as many steps, with the same scores; only what is told differs.
    main(["evaluate", str(run_dir), "--data-dir", str(place)])
    assert str(result.evaluation) in capsys.readouterr().out
    main(["evaluate", str(run_dir), "--probe", "knn", "--data-dir", str(place)])
    out = capsys.readouterr().out
    assert "Walk: protocol plain" in out
    assert f"of a {PROBE_STEPS}-step store" in out
    found = manicap.diagnose(run_dir, data_dir=place, quiet=True, probe_steps=2000, windows=128, window_frames=2)
    assert found.measures["effective_rank"] > 0
    places = ["--probe-steps", str(PROBE_STEPS), "--data-dir", str(place)]
    main(["evaluate", str(run_dir), "--annotation-set", "play", "--probe", "discriminant", *places])
    assert "next_action" in capsys.readouterr().out


def test_evaluate_says_so_if_it_cannot_know_how_the_run_was_probed(result, run_dir, place, tmp_path, capsys):
    copy = tmp_path / run_dir.name
    shutil.copytree(run_dir, copy)
    (copy / "result.json").write_text((copy / "result.json").read_text().replace("Walk", "Wolk"))
    main(["evaluate", str(copy), "--probe", "knn", "--probe-steps", str(PROBE_STEPS), "--data-dir", str(place)])
    found = capsys.readouterr()
    assert "is damaged" in found.err
    assert "how the run was probed is not known, and the defaults are used" in found.err
    assert "Walk: protocol plain" in found.out


def test_coordinates_are_only_drawn_and_do_not_forbid_a_comparison(result, run_dir, place, capsys):
    # Two seeds, one of them with a variable drawn into the frames of its page.
    evaluation = {"probe_steps": PROBE_STEPS, "coordinates": ("x:x:0:21",)}
    told = {"runs_dir": place, "data_dir": place, "execution": QUIET}
    [other] = manicap.run("st-dim", env=WALK, seeds=(1,), evaluation=evaluation, **told, **SMALL)
    compared = manicap.compare(run_dir, place / other.config.run_name, data_dir=place, quiet=True)
    assert "st-dim" in str(compared)


@pytest.fixture(scope="module")
def orphan(tmp_path_factory):
    """The directory of a run, in a folder with its frames: its environment cannot be imported any more."""
    place = tmp_path_factory.mktemp("gone")
    module = place / "gone_world.py"
    module.write_text("from tests.environments.worlds import Walk\n\n\nclass Gone(Walk):\n    pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place)
        [found] = manicap.run(
            "random-cnn",
            env="gone_world:Gone",
            stack=2,
            collect_steps=600,
            lanes=4,
            runs_dir=place,
            data_dir=place,
            execution=QUIET,
            evaluation={"probe_steps": 2000, "probe": "discriminant"},
        )
    module.unlink()
    return place / found.config.run_name


def in_a_new_process(*lines):
    code = "\n".join(["import sys", "import manicap", *lines, "assert 'gone_world' not in sys.modules"])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_an_encoder_is_loaded_without_its_environment(orphan):
    found = in_a_new_process(
        f"encoder = manicap.load({str(orphan)!r})",
        "import torch",
        "print(len(encoder(torch.zeros(2, 6, 48, 64, dtype=torch.uint8))), encoder.card.subject, encoder.card.view)",
    )
    assert found.stdout == "2 Gone colour, 2 frames, 48 x 64\n", found.stderr


def test_a_run_is_probed_diagnosed_and_shown_without_its_environment_if_its_frames_are_there(orphan):
    place = str(orphan.parent)
    probing = ["evaluate", str(orphan), "--probe", "knn", "--width", "8", "--coordinates", "x:x:0:10"]
    found = in_a_new_process(
        "from pathlib import Path",
        "from manicap.cli.main import main",
        "from manicap.report.pages import write_page",
        f"main({[*probing, '--probe-steps', '2000', '--data-dir', place]})",
        f"manicap.diagnose({str(orphan)!r}, data_dir={place!r}, probe_steps=2000, windows=128, window_frames=2)",
        f"print(write_page(Path({str(orphan)!r}), Path({place!r})))",
        "try:",  # frames that are not there are the environment's to give
        f"    manicap.diagnose({str(orphan)!r}, data_dir={place!r}, probe_steps=3000)",
        "except ValueError as error:",
        "    print(error)",
    )
    assert "Gone: protocol plain" in found.stdout, found.stderr
    *_, page, refusal = found.stdout.splitlines()
    assert page == str(orphan / "report.html")
    assert refusal.startswith("the environment gone_world:Gone is not part of manicap")


@pytest.mark.parametrize("planes", [0, 1])
def test_gray_frames_are_seen_in_gray(planes, tmp_path):
    [found] = manicap.run(
        "random-cnn",
        env="tests.environments.worlds:Gray",
        options=f'{{"planes": {planes}}}',
        stack=2,
        collect_steps=300,
        lanes=2,
        runs_dir=tmp_path,
        data_dir=tmp_path,
        execution=QUIET,
        evaluation={"probe_steps": 300, "probe": "discriminant"},
    )
    assert found.evaluation.view == "gray, 2 frames, 48 x 64"
    encoder = manicap.load(tmp_path / found.config.run_name)
    assert str(encoder.card.view) == "gray, 2 frames, 48 x 64"
    assert len(encoder(torch.zeros(3, 2, 48, 64, dtype=torch.uint8))) == 3


def test_a_store_of_gray_frames_is_learned_from(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (240, 48, 48), np.uint8)
    np.savez(tmp_path / "play.npz", frames=frames, episode=np.arange(240) // 24)
    store = manicap.record_from(tmp_path / "play.npz", "gray", data_dir=tmp_path, quiet=True)
    run = manicap.pretrain(store, runs_dir=tmp_path, data_dir=tmp_path, execution=QUIET, **SMALL)
    shutil.rmtree(store.path)  # its encoder does not need it
    encoder = manicap.load(run)
    assert encoder.input_shape == (1, 48, 48)
    assert str(encoder.card.view) == "gray, 48 x 48"


def test_a_store_of_ones_own_is_divided_and_not_recorded_again(place):
    store = manicap.record(WALK, steps=900, lanes=4, data_dir=place, quiet=True)
    learned, probed = divided(store)
    rows = np.concatenate([learned.source_rows, probed.source_rows])
    assert np.array_equal(np.sort(rows), store.rows)  # every frame in one of the two
    assert abs(len(learned.episodes) / len(store.episodes) - 0.6) < 0.5 / len(store.episodes) + 1e-9
    frame = learned.colour_frames(np.array([5]))
    assert np.array_equal(frame[0], store.colour_frames(learned.source_rows[5]))
    for part in (learned, probed):
        some = np.array([7, 3, len(part) - 1])
        own, whole = part.labelling("recorded"), store.labelling("recorded")
        for name, labels in own.labels(some).items():
            assert np.array_equal(labels, whole.labels(part.source_rows[some])[name])
        expected = np.load(store.path / "labels.npy")["speed"][part.source_rows[some]]
        np.testing.assert_allclose(own.values(some, ["speed"])[:, 0], expected)
        assert np.array_equal(part.frames[some], store.frames[part.source_rows[some]])
    before = sorted(place.glob("environments/*/*"))
    places = {"runs_dir": place, "data_dir": place, "execution": QUIET, "evaluation": {"probe": "discriminant"}}
    [found] = manicap.run(store, method="st-dim", **places, **SMALL)
    assert sorted(place.glob("environments/*/*")) == before
    assert found.subject == "Walk"
    assert found.evaluation.store == probed.fingerprint != learned.fingerprint
    assert found.evaluation.steps == len(probed)
    with pytest.raises(
        UserError, match=f"policy, frame_size are settings of a recording, and {store.path} is recorded"
    ):
        manicap.run(store, method="st-dim", frame_size=(96, 96), policy="tests.environments.worlds:rightwards")
    with pytest.raises(UserError, match="must be a method or a store of an environment, got Walk"):
        manicap.run(Walk(), method="st-dim")


def test_a_stack_shows_what_no_single_frame_does(place):
    [found] = manicap.run(
        "random-cnn",
        env=WALK,
        stack=2,
        colour=False,
        collect_steps=600,
        lanes=4,
        runs_dir=place,
        data_dir=place,
        execution=QUIET,
        evaluation={"probe_steps": PROBE_STEPS, "probe": "discriminant"},
    )
    assert found.evaluation.view == "gray, 2 frames, 48 x 64"
    assert manicap.load(place / found.config.run_name)(torch.zeros(1, 2, 48, 64, dtype=torch.uint8)).ndim == 2


@pytest.mark.parametrize("name", ATARI)
def test_every_method_on_frames_learns_from_it(name, place):
    own = {field.name for field in fields(METHODS[name].settings_type)}
    small = SMALL_SETTINGS.get(name, {"units": 8} if "units" in own else {})
    values = SMALL | {"max_steps": 2} | small
    values = {key: value for key, value in values.items() if key != "units" or "units" in own}
    run = manicap.pretrain(name, env=WALK, runs_dir=place / "all", data_dir=place, execution=QUIET, **values)
    features = manicap.load(run)(torch.zeros(2, 3, 48, 64, dtype=torch.uint8))
    assert len(features) == 2
    assert torch.isfinite(features).all()


def test_a_grid_compares_methods_on_it(place):
    config = {
        "title": "walk",
        "domain": "environments",
        "datasets": ["CartPole-v1"],
        "methods": ["random-cnn", "st-dim"],
        "seeds": [0],
        "preset": "quick",
        "run": {"collect_steps": 300, "lanes": 2, "frame_size": [48, 64], "max_steps": 2, "batch_size": 4},
        "probe": {"probe_steps": 300, "probe": "discriminant", "probe_input": "backbone"},
    }
    grid = build_grid(config, "grid.toml")
    assert [run_cell(Job(cell, QUIET, place, place, ()), show=write_page).status for cell in grid.cells] == ["done"] * 2


def test_supervised_refuses_more_values_than_it_has_classes(place):
    """x of a walk is a whole number; times 300 it has more than 256."""
    with pytest.raises(UserError, match="supervised tells 256 values of a variable apart, and far has"):
        manicap.pretrain(
            "supervised",
            env=WALK,
            labels="tests.environments.worlds:far",
            runs_dir=place / "far",
            data_dir=place,
            execution=QUIET,
            **SMALL,
        )


def test_supervised_refuses_labels_that_do_not_vary(tmp_path):
    """A lamp that is always lit has an entropy of 0."""
    frames = np.random.default_rng(0).integers(0, 256, (60, 48, 48, 3), np.uint8)
    np.savez(tmp_path / "play.npz", frames=frames, episode=np.arange(60) // 10, label_lit=np.ones(60, bool))
    store = manicap.record_from(tmp_path / "play.npz", "lamp", data_dir=tmp_path, quiet=True)
    with pytest.raises(UserError, match=r"no variable of recorded varies enough .* for supervised \(.* nats: lit\)"):
        manicap.pretrain(store, method="supervised", runs_dir=tmp_path, data_dir=tmp_path, execution=QUIET)


def test_an_environment_without_labels_is_refused_before_it_is_recorded(tmp_path):
    silent = {"env": "tests.environments.worlds:Silent", "runs_dir": tmp_path, "data_dir": tmp_path, "execution": QUIET}
    with pytest.raises(UserError, match="says nothing of its state.*--annotation-set play"):
        manicap.run("st-dim", **silent, **SMALL)
    assert not list(tmp_path.glob("environments/*"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--env", "CartPole-v9"], "unknown environment 'CartPole-v9'; did you mean CartPole-v"),
        (["--env", "CartPole-v1"], "has frames of 400 x 600; sides must be 48 to 256"),
        (["--env", WALK, "--frame-size", "20", "20"], r"frame_size\[0\] must be at least 48, got 20"),
        (["--env", WALK, "--game", "pong"], "--game"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_recorded(flags, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["run", *flags, "--data-dir", str(tmp_path), "--runs-dir", str(tmp_path)])
    assert stop.value.code == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
    assert not list(tmp_path.iterdir())


def test_a_probe_of_real_numbers_agrees_with_scikit_learn():
    """Ridge regression of values whose labels are bins: R2 near that of scikit-learn at a fixed regularization."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((900, 20)).astype(np.float32)
    values = (features @ rng.standard_normal((20, 1)) + 0.3 * rng.standard_normal((900, 1))) * [0.001, 50]
    bins = np.stack([np.searchsorted(np.quantile(column, np.arange(1, 10) / 10), column) for column in values.T], 1)
    train, test = (
        ProbeData(features[part], bins[part], np.arange(len(bins))[part] // 30, ("number", "number"), values[part])
        for part in (slice(600), slice(600, None))
    )
    probe = RidgeProbes(0).fit(train)
    curves = probe.read(test, ("small", "large")).curves
    plain = Ridge(alpha=1.0).fit(features[:600], values[:600]).predict(features[600:])
    for v, name in enumerate(("small", "large")):
        assert curves[name][0][-1] == pytest.approx(r2_score(values[600:, v], plain[:, v]), abs=0.01)
    bits = probe.read(test, ("small", "large")).bits
    # The same number in other units.
    assert bits["small"] == pytest.approx(bits["large"], rel=1e-3)
    assert bits["small"] < 0.8 * 600 * np.log2(256)
