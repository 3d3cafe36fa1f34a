"""No moment at which a process may die leaves a run without a sound checkpoint."""

import os
import signal

import pytest
import torch

from manicap.core.errors import UserError
from manicap.core.files import remove_scratch
from manicap.train.checkpoint import CheckpointStore
from tests.train.runner import in_process


def state(step, value=0.0):
    return {"progress": {"step": step}, "method": {"weight": torch.full((64,), value)}}


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def value_of(store):
    return float(store.load_newest(pytest.fail)["method"]["weight"][0])


def save_and_die_before_the_entry(directory, step, value):
    import manicap.train.checkpoint as checkpoint

    checkpoint.write_sealed = lambda path, content: os.kill(os.getpid(), signal.SIGKILL)
    CheckpointStore(directory).save(step, state(step, value))


def save_and_die_in_the_data(directory, step):
    torch.save = lambda content, file: (file.write(b"half"), file.flush(), os.kill(os.getpid(), signal.SIGKILL))
    CheckpointStore(directory).save(step, state(step))


def test_a_kill_between_the_two_files_of_the_same_step_leaves_the_first_save(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(5, state(5, 1.0))
    assert in_process(save_and_die_before_the_entry, tmp_path, 5, 2.0) == -signal.SIGKILL
    assert value_of(store) == 1.0
    store.save(5, state(5, 3.0))
    assert value_of(store) == 3.0
    assert len(names(tmp_path)) == 2  # neither the file of the first save nor that of the killed one


def test_a_kill_while_writing_leaves_a_scratch_file_that_can_be_removed(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(1, state(1))
    before = names(tmp_path)
    assert in_process(save_and_die_in_the_data, tmp_path, 2) == -signal.SIGKILL
    assert len(names(tmp_path)) == len(before) + 1
    remove_scratch(tmp_path)
    assert names(tmp_path) == before


def test_the_last_two_are_kept(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (3, 7, 8, 12):
        store.save(step, state(step))
    assert names(tmp_path) == ["step-00000008-0.pt", "step-00000008.json", "step-00000012-0.pt", "step-00000012.json"]


def test_a_save_after_going_back_forgets_the_damaged_one_and_not_the_sound_one(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(4, state(4))
    store.save(9, state(9))
    (tmp_path / "step-00000009-0.pt").write_bytes(b"damaged")
    said = []
    assert store.load_newest(said.append)["progress"]["step"] == 4
    assert len(said) == 1
    store.save(5, state(5))
    assert [path.stem for path in sorted(tmp_path.glob("*.json"))] == ["step-00000004", "step-00000005"]


@pytest.mark.parametrize("name", ["step-00000009-0.pt", "step-00000009.json"])
def test_a_directory_in_the_place_of_a_file_counts_as_damage_and_is_removed(name, tmp_path):
    # As a copy that went wrong may leave it. The run goes back to step 4 and reaches step 9 a second time.
    store = CheckpointStore(tmp_path)
    store.save(4, state(4))
    store.save(9, state(9))
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    said = []
    assert store.load_newest(said.append)["progress"]["step"] == 4
    assert len(said) == 1
    for step in (9, 10):
        store.save(step, state(step))
    assert store.load_newest(pytest.fail)["progress"]["step"] == 10
    assert all(path.is_file() for path in tmp_path.iterdir())


def test_a_flipped_byte_anywhere_is_noticed_or_harmless(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(1, state(1, 0.5))
    store.save(2, state(2, 0.75))
    entry = tmp_path / "step-00000002.json"
    content = entry.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        entry.write_bytes(damaged)
        said = []
        value = float(store.load_newest(said.append)["method"]["weight"][0])
        assert value == (0.5 if said else 0.75)


def test_without_a_sound_one_the_run_is_not_started_again_in_silence(tmp_path):
    store = CheckpointStore(tmp_path)
    assert store.load_newest(pytest.fail) is None
    store.save(1, state(1))
    (tmp_path / "step-00000001.json").write_text("{}")
    with pytest.raises(UserError, match="is intact; remove the run's directory to start over"):
        store.load_newest(lambda line: None)
