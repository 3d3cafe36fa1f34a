"""Any encoder is probed on any store, with the defaults of what was played."""

import shutil

import numpy as np
import pytest

import manicap
from manicap.cli.main import main
from manicap.core.errors import UserError
from manicap.environments.recording import record
from manicap.probing.play_bench import PlayBench

WALK = "tests.environments.worlds:Walk"


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """A square that moves on 48 x 64 pixels."""
    return record(WALK, steps=600, lanes=4, data_dir=tmp_path_factory.mktemp("walk"), workers=0, quiet=True)


def columns(frames):
    """Where the square's orange is: the mean red of each column."""
    assert frames.shape[1:] == (3, 48, 64)
    return frames[:, 0].mean(1, dtype=np.float32)


def rows_of_gray(frames):
    assert frames.shape[1:] == (2, 24, 32)
    return frames[:, 1].mean(2, dtype=np.float32)


def test_an_encoder_of_ones_own_sees_a_store_as_it_was_recorded(walk):
    found = manicap.evaluate(columns, bench=walk, floors=("majority",), probe="discriminant", quiet=True)
    assert (found.protocol, found.annotation_set, found.subject, found.width) == ("plain", "recorded", "Walk", 64)
    # x is the column of the square over 3, minus 3: linear in the means of the columns.
    assert found.scores.variables["x"].r2 > 0.999


def test_gray_stacks_of_another_size_are_shown_on_request(walk):
    shown = {"colour": False, "stack": 2, "size": (24, 32)}
    found = manicap.evaluate(rows_of_gray, bench=walk, floors=(), probe="discriminant", quiet=True, **shown)
    assert found.view == "gray, 2 frames, 24 x 32"


def test_a_bench_has_the_defaults_of_its_store(walk, pong_store):
    for store, protocol, annotation_set, view in (
        (walk, "plain", "recorded", "colour, 48 x 64"),
        (pong_store, "fixed", "corrected", "gray"),
    ):
        bench = PlayBench(store)
        assert (bench.protocol.name, bench.annotation_set, str(bench.view)) == (protocol, annotation_set, view)


def test_a_store_of_an_environment_has_no_annotations_of_games(walk):
    with pytest.raises(UserError, match="unknown annotation set 'corrected'"):
        manicap.evaluate(columns, bench=walk, annotation_set="corrected", quiet=True)
    with pytest.raises(UserError, match="the bench has steps 600, not 1200"):
        manicap.evaluate(columns, bench=walk, steps=1200, quiet=True)


def test_what_to_probe_on_must_be_named():
    with pytest.raises(UserError, match="name what to probe on: game='pong', dataset='cifar10', or bench=a store"):
        manicap.evaluate(columns)


def test_one_function_opens_and_one_command_verifies_both_kinds_wherever_they_are(walk, pong_store, tmp_path, capsys):
    for store in (walk, pong_store):
        copy = tmp_path / store.subject
        shutil.copytree(store.path, copy)
        assert manicap.open_store(copy).fingerprint == store.fingerprint
        main(["data", "verify", str(copy)])
        main(["data", "splits", str(copy)])
        assert f"{copy}: sound" in capsys.readouterr().out


def test_a_missing_store_is_not_called_damaged(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["data", "verify", str(tmp_path / "nowhere")])
    assert f"there is no {tmp_path / 'nowhere'}" in capsys.readouterr().err
