"""A run killed at any moment ends with the same bytes as one that was not."""

import os
import re
import shutil
import signal

import pytest
import torch

from manicap.core.errors import Failure, UserError
from manicap.train.checkpoint import CheckpointStore
from manicap.train.loop import Run, pretrain
from manicap.train.setup import Execution
from tests.algorithms.small import TRAINED, like_quick, small_config
from tests.train.runner import (
    in_process,
    result_bytes,
    run_and_signal,
    run_and_signal_in_the_last_validation,
    run_to_end,
    run_until_killed,
)

KILLS = 2
"""Per method."""
ALWAYS = ("dim-c+", "cpc", "vae", "supervised")
"""One method of each way to make a batch: pairs, windows, noise, labels. The others are killed by `pytest -m slow`."""
EACH = [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in TRAINED]


def config_of(name):
    """DIM-C+ as quick trains it: statistics of the store, triples, a schedule."""
    return like_quick(name) if name == "dim-c+" else small_config(name)


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """The files of a run that nothing interrupted, by method."""
    found = {}

    def files(name):
        if name not in found:
            run_dir = tmp_path_factory.mktemp("whole") / "run"
            run_to_end(config_of(name), run_dir, data_dir)
            found[name] = result_bytes(run_dir)
        return found[name]

    return files


@pytest.fixture(scope="module")
def stopped_once(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("stopped") / "run"
    assert in_process(run_and_signal, small_config("st-dim"), run_dir, data_dir, signal.SIGTERM, 3) == 143
    return run_dir


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A run of st-dim that SIGTERM stopped in its fourth step."""
    return shutil.copytree(stopped_once, tmp_path / "run")


@pytest.mark.parametrize("name", EACH)
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(name, whole, data_dir, tmp_path):
    config = config_of(name)
    kills = 0
    for attempt in range(20):
        if kills == KILLS:
            break
        code = in_process(run_until_killed, config, tmp_path / "killed", data_dir, f"{name} {attempt}", 0.4)
        kills += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL)
        if code == 0:  # it was done before the kill came: start again
            (tmp_path / "killed").rename(tmp_path / f"done-{attempt}")
            assert result_bytes(tmp_path / f"done-{attempt}") == whole(name)
    assert kills == KILLS
    assert in_process(run_to_end, config, tmp_path / "killed", data_dir) == 0
    assert result_bytes(tmp_path / "killed") == whole(name)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_sigterm_and_sigint_leave_a_checkpoint_and_their_exit_code(number, code, whole, data_dir, tmp_path):
    config = small_config("st-dim")
    assert in_process(run_and_signal, config, tmp_path / "run", data_dir, number, 3) == code
    # The signal came during the fourth step, which was finished before the checkpoint was written.
    assert CheckpointStore(tmp_path / "run" / "checkpoints").newest_step() == 4
    run_to_end(config, tmp_path / "run", data_dir)
    # Only the checkpoint interval differed, which is no part of the result.
    assert result_bytes(tmp_path / "run")["encoder.safetensors"] == whole("st-dim")["encoder.safetensors"]


def checkpoint_files(run_dir, suffix=".pt"):
    return sorted((run_dir / "checkpoints").glob(f"*{suffix}"))


def truncate(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def flip_a_bit(path):
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize(
    ("damage", "words"),
    [(truncate, "bytes instead of"), (flip_a_bit, "has changed"), (lambda path: path.unlink(), "is missing")],
    ids=["truncated", "bit-flipped", "missing"],
)
def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_used(
    damage, words, stopped, whole, data_dir, capsys
):
    config = small_config("st-dim")
    assert in_process(run_and_signal, config, stopped, data_dir, signal.SIGTERM, 6) == 143
    assert [path.stem for path in checkpoint_files(stopped)] == ["step-00000004-0", "step-00000007-0"]
    damage(checkpoint_files(stopped)[-1])
    pretrain(config, stopped, Execution(threads=1, log_every=1), data_dir)
    assert re.search(f"checkpoint step-00000007 .*{words}.*: falling back to the previous one", capsys.readouterr().err)
    assert result_bytes(stopped)["encoder.safetensors"] == whole("st-dim")["encoder.safetensors"]


def test_no_sound_checkpoint_at_all_is_an_error_and_not_a_silent_restart(stopped, data_dir):
    for path in checkpoint_files(stopped):
        truncate(path)
    with pytest.raises(UserError, match="no checkpoint in .* is intact; remove the run's directory"):
        run_to_end(small_config("st-dim"), stopped, data_dir)


def test_a_changed_thread_count_is_refused_with_the_difference_unless_forced(data_dir, tmp_path):
    config = small_config("st-dim", max_steps=3)
    assert in_process(run_and_signal, config, tmp_path / "run", data_dir, signal.SIGTERM, 1) == 143
    try:
        with pytest.raises(UserError, match="threads was 1, is now 2"):
            pretrain(config, tmp_path / "run", Execution(threads=2, quiet=True), data_dir)
        pretrain(config, tmp_path / "run", Execution(threads=2, quiet=True, force=True), data_dir)
    finally:
        torch.set_num_threads(1)
    assert (tmp_path / "run" / "encoder.json").is_file()


def test_a_changed_config_is_refused_with_the_difference(data_dir, tmp_path):
    run_to_end(small_config("st-dim", max_steps=3), tmp_path / "run", data_dir)
    with pytest.raises(UserError, match="config.learning_rate was 0.0003, is now 0.1"):
        run_to_end(small_config("st-dim", max_steps=3, learning_rate=0.1), tmp_path / "run", data_dir)


def test_a_config_edited_in_a_stopped_run_is_refused(stopped, data_dir):
    path = stopped / "config.toml"
    path.write_text(path.read_text().replace("batch_size = 6", "batch_size = 4"))
    with pytest.raises(UserError, match="config.batch_size was 6, is now 4"):
        run_to_end(small_config("st-dim", batch_size=4), stopped, data_dir)


def test_another_torch_version_is_refused(stopped, data_dir, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "9.9.9")
    with pytest.raises(UserError, match="torch was .*, is now 9.9.9"):
        run_to_end(small_config("st-dim"), stopped, data_dir)


def test_a_finished_run_answers_at_once(data_dir, tmp_path, monkeypatch):
    config = small_config("st-dim", max_steps=3)
    run_to_end(config, tmp_path / "run", data_dir)
    before = result_bytes(tmp_path / "run")
    monkeypatch.setattr("manicap.train.loop.prepare", lambda *_: pytest.fail("prepared again"))
    run_to_end(config, tmp_path / "run", data_dir)
    assert result_bytes(tmp_path / "run") == before


def test_a_signal_in_the_last_validation_is_not_lost(whole, data_dir, tmp_path):
    config = small_config("st-dim")
    assert in_process(run_and_signal_in_the_last_validation, config, tmp_path / "run", data_dir, signal.SIGINT) == 130
    assert not (tmp_path / "run" / "encoder.json").exists()
    run_to_end(config, tmp_path / "run", data_dir)
    assert result_bytes(tmp_path / "run") == whole("st-dim")


def test_the_best_weights_are_part_of_every_checkpoint(data_dir, tmp_path, monkeypatch):
    # A huge learning rate: the first epoch stays the best, and the run dies in the second.
    config = small_config("dim", max_steps=None, max_epochs=2, learning_rate=3.0, batch_size=60)
    run_to_end(config, tmp_path / "whole", data_dir)
    step = Run.step

    def failing_step(self, rows):
        if self.progress.epoch == 1 and self.progress.batch == 2:
            raise Failure("the power went out")
        return step(self, rows)

    monkeypatch.setattr(Run, "step", failing_step)
    with pytest.raises(Failure, match="power"):
        run_to_end(config, tmp_path / "run", data_dir)
    monkeypatch.setattr(Run, "step", step)
    # The newest checkpoint is damaged: the one before has the best weights of its own moment.
    flip_a_bit(checkpoint_files(tmp_path / "run")[-1])
    run_to_end(config, tmp_path / "run", data_dir)
    assert result_bytes(tmp_path / "run") == result_bytes(tmp_path / "whole")
    chosen = result_bytes(tmp_path / "run")["encoder.safetensors"]
    assert chosen != result_bytes(tmp_path / "run")["encoder-last.safetensors"]
