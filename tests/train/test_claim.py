"""A run's directory belongs to one config; a finished run is never changed; what a kill has left is cleared."""

import shutil
from dataclasses import replace

import pytest

from manicap.core.errors import Failure, UserError
from manicap.core.files import SCRATCH_SUFFIX
from manicap.diagnostics.training import measure_batch
from manicap.train.checkpoint import CheckpointStore
from manicap.train.config_file import read_run_config
from manicap.train.loop import Run, pretrain
from manicap.train.record import read_record
from manicap.train.setup import Execution
from tests.algorithms.small import small_config
from tests.train.runner import EXECUTION, result_bytes, run_to_end

FORCED = replace(EXECUTION, force=True)


def files_of(run_dir):
    return {path.relative_to(run_dir): path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def finished(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(small_config("st-dim", max_steps=2), run_dir, data_dir)
    return run_dir


@pytest.fixture
def power_cut(monkeypatch):
    """Runs fail in their eighth step."""
    step = Run.step

    def failing_step(self, rows):
        if self.progress.step == 7:
            raise Failure("the power went out")
        return step(self, rows)

    monkeypatch.setattr(Run, "step", failing_step)
    return lambda: monkeypatch.setattr(Run, "step", step)


def test_force_does_not_change_a_finished_run(finished, data_dir):
    before = files_of(finished)
    other = small_config("st-dim", max_steps=2, learning_rate=0.1)
    sentence = (
        "holds a finished run with a different config: config.learning_rate was 0.0003, is now 0.1; --force resumes"
        " a run and never changes a finished one; choose another --name"
    )
    with pytest.raises(UserError, match=sentence):
        run_to_end(other, finished, data_dir, FORCED)
    run_to_end(small_config("st-dim", max_steps=2), finished, data_dir, FORCED)
    assert files_of(finished) == before


def test_force_resumes_a_stopped_run_with_another_config(power_cut, data_dir, tmp_path):
    with pytest.raises(Failure, match="power"):
        run_to_end(small_config("st-dim"), tmp_path / "run", data_dir)
    power_cut()
    other = small_config("st-dim", learning_rate=0.001)
    with pytest.raises(UserError, match=r"config\.learning_rate was 0\.0003, is now 0\.001; choose another --name"):
        run_to_end(other, tmp_path / "run", data_dir)
    assert read_run_config(tmp_path / "run").learning_rate == 0.0003
    # Weights of another size cannot be resumed by any force.
    wider = small_config("st-dim", settings=replace(other.settings, units=9))
    with pytest.raises(UserError, match=r"does not match the config \(config\.settings\.units was 8, is now 9\)"):
        run_to_end(wider, tmp_path / "run", data_dir, FORCED)
    assert read_run_config(tmp_path / "run") == small_config("st-dim")
    run_to_end(other, tmp_path / "run", data_dir, FORCED)
    assert read_run_config(tmp_path / "run").learning_rate == 0.001


def test_a_value_changed_in_config_toml_is_noticed(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("seed = 0", "seed = 1"))
    with pytest.raises(
        UserError, match=r"config\.toml has changed since the run started: config\.seed was 0, is now 1"
    ):
        read_run_config(tmp_path / "run")


def test_a_run_from_before_a_setting_was_added_is_still_read(finished, tmp_path):
    run_dir = shutil.copytree(finished, tmp_path / "run")
    path, record = run_dir / "config.toml", read_record(run_dir)
    assert record.config["settings"].pop("coherence_filter") is False
    record.write(run_dir)
    path.write_text(path.read_text().replace("coherence_filter = false\n", ""))
    assert read_run_config(run_dir) == read_run_config(finished)
    path.write_text(path.read_text().replace("[settings]\n", "[settings]\ncoherence_filter = true\n"))
    with pytest.raises(UserError, match=r"config\.settings\.coherence_filter was False, is now True"):
        read_run_config(run_dir)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 1}', b"\xff"])
def test_a_damaged_record_is_one_sentence(content, data_dir, tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "run.json").write_bytes(content)
    with pytest.raises(UserError, match=r"run\.json is .*; remove the run's directory to start over"):
        run_to_end(small_config("st-dim", max_steps=2), run_dir, data_dir)


def test_a_run_without_a_record_is_left_alone(finished, data_dir, tmp_path):
    run_dir = tmp_path / "run"
    (run_dir / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match=r"a run of an earlier version \(it has no run\.json\)"):
        run_to_end(small_config("st-dim", max_steps=2), run_dir, data_dir)


def test_what_a_kill_has_left_is_cleared_at_the_next_start(finished, power_cut, data_dir, tmp_path):
    run_dir = tmp_path / "run"
    with pytest.raises(Failure, match="power"):
        run_to_end(small_config("st-dim"), run_dir, data_dir)
    scratch = [run_dir / f".config.toml.abc{SCRATCH_SUFFIX}", run_dir / "checkpoints" / f".x.pt.abc{SCRATCH_SUFFIX}"]
    for path in scratch:
        path.write_bytes(b"half")
    power_cut()
    run_to_end(small_config("st-dim"), run_dir, data_dir)
    assert not any(path.exists() for path in scratch)
    assert set(files_of(run_dir)) == set(files_of(finished))  # and its checkpoints are gone
    # A kill after the last file and before the checkpoints were removed.
    CheckpointStore(run_dir / "checkpoints").save(12, {})
    (run_dir / f".encoder.json.abc{SCRATCH_SUFFIX}").write_bytes(b"half")
    run_to_end(small_config("st-dim"), run_dir, data_dir)
    assert set(files_of(run_dir)) == set(files_of(finished))


def test_a_resumed_run_logs_and_diagnoses_as_it_was_begun(power_cut, data_dir, tmp_path):
    begun = Execution(threads=1, quiet=True, checkpoint_seconds=0, log_every=3, diagnose_every=4)
    plain = replace(begun, log_every=None, diagnose_every=None)
    with pytest.raises(Failure, match="power"):
        pretrain(small_config("st-dim"), tmp_path / "run", begun, data_dir, observe=measure_batch)
    power_cut()
    pretrain(small_config("st-dim"), tmp_path / "run", plain, data_dir, observe=measure_batch)
    pretrain(small_config("st-dim"), tmp_path / "whole", begun, data_dir, observe=measure_batch)
    assert result_bytes(tmp_path / "run") == result_bytes(tmp_path / "whole")
    logs = [(tmp_path / name / "diagnostics.jsonl").read_text() for name in ("run", "whole")]
    assert logs[0] == logs[1]
    assert logs[0].count("\n") == 3  # steps 4, 8 and 12


def test_what_is_given_takes_the_place_of_what_was_begun(power_cut, data_dir, tmp_path):
    with pytest.raises(Failure, match="power"):
        run_to_end(small_config("st-dim"), tmp_path / "run", data_dir, replace(EXECUTION, log_every=1))
    power_cut()
    run_to_end(small_config("st-dim"), tmp_path / "run", data_dir, replace(EXECUTION, log_every=6))
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert sum('"split": "train"' in line for line in lines) == 8  # steps 1 to 7, and 12


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"log_every": 0}, "log_every must be at least 1, got 0"),
        ({"diagnose_every": -1}, "diagnose_every must be at least 1, got -1"),
        ({"threads": 0}, "threads must be "),
        ({"threads": -1}, "threads must be "),
        ({"threads": 100_000}, "threads must be "),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds must "),
    ],
)
def test_an_execution_that_cannot_be_is_one_sentence(changes, sentence, data_dir, tmp_path):
    with pytest.raises(UserError, match=sentence):
        run_to_end(small_config("st-dim"), tmp_path / "run", data_dir, replace(EXECUTION, **changes))
    assert not (tmp_path / "run").exists()
