"""What can go wrong while collecting, done for real: kills, races, full and read-only disks."""

import os
import signal

import pytest

from manicap.atari.collect import collect
from manicap.atari.integrity import verify_store
from manicap.atari.store import StoreConfig, list_stores
from manicap.core.errors import Failure, UserError
from tests.atari.conftest import child_pids, wait_for_exit

LONG = ("collect", "--game", "pong", "--steps", "8000")


def leavings(data_dir):
    return [path.name for path in data_dir.glob("*/.*") if not path.name.endswith(".lock")]


def wait_for_progress(process):
    """Returns once the collector has printed its first progress line: lanes are playing."""
    for line in process.stderr:
        if "steps/s" in line:
            return
    pytest.fail("the collector ended without progress")


def test_a_killed_worker_fails_the_collection_and_names_the_lane(start_manicap, tmp_path):
    process = start_manicap(*LONG, "--data-dir", tmp_path)
    wait_for_progress(process)
    os.kill(child_pids(process.pid)[0], signal.SIGKILL)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in messages
    assert any(f"lane {lane} of pong was killed by SIGKILL" in messages for lane in range(8))
    assert list_stores(tmp_path) == []
    assert leavings(tmp_path) == []


def test_after_a_killed_collector_its_workers_end_and_the_next_one_starts_clean(start_manicap, tmp_path):
    process = start_manicap(*LONG, "--data-dir", tmp_path)
    wait_for_progress(process)
    workers = child_pids(process.pid)
    assert workers
    process.kill()
    process.wait()
    assert all(wait_for_exit(worker) for worker in workers)
    assert len(leavings(tmp_path)) == 1
    assert list_stores(tmp_path) == []

    again = start_manicap("collect", "--game", "pong", "--steps", "8000", "--data-dir", tmp_path)
    again.communicate(timeout=120)
    assert again.returncode == 0
    (path,) = list_stores(tmp_path)
    assert verify_store(path) == []
    assert leavings(tmp_path) == []


def test_ctrl_c_exits_130_and_leaves_nothing(start_manicap, tmp_path):
    process = start_manicap(*LONG, "--data-dir", tmp_path)
    wait_for_progress(process)
    os.killpg(process.pid, signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in messages
    assert list_stores(tmp_path) == []
    assert leavings(tmp_path) == []


def test_two_collectors_of_one_store_both_succeed_with_one_copy(start_manicap, tmp_path):
    processes = [start_manicap("collect", "--game", "pong", "--steps", "1600", "--data-dir", tmp_path) for _ in "ab"]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0][0] == outputs[1][0]
    (path,) = list_stores(tmp_path)
    assert verify_store(path) == []
    assert leavings(tmp_path) == []


def test_what_does_not_fit_is_refused_before_a_byte_of_it_is_written(small_disk, monkeypatch):
    # At most 2,500 bytes a step: 20,000 take up to 0.05 GB, on a disk of 4.2 MB (4 x 2^20).
    monkeypatch.setattr("manicap.atari.collect._play_in_processes", lambda *_: pytest.fail("played"))
    expected = r"20,000 steps of pong need 0.056 GB, but only 0.004 GB are free in .*disk/pong"
    with pytest.raises(Failure, match=expected):
        collect(StoreConfig("pong", steps=20_000), small_disk, quiet=True)
    assert list_stores(small_disk) == []
    assert leavings(small_disk) == []


def test_steps_beyond_any_disk_are_one_sentence(tmp_path):
    with pytest.raises(UserError):
        collect(StoreConfig("pong", steps=10**21), tmp_path, quiet=True)
    assert leavings(tmp_path) == []


def test_a_disk_that_fills_up_on_the_way_is_told_and_leaves_nothing(small_disk, monkeypatch):
    monkeypatch.setattr("manicap.atari.collect.require_space", lambda *_: None)  # somebody else takes the space
    # Ms Pacman takes more than 1,000 bytes a step and as much again while the lanes are joined; RAM alone takes 128.
    with pytest.raises(Failure, match=r"cannot collect into .*disk: .*No space left on device"):
        collect(StoreConfig("ms_pacman", steps=4_000), small_disk, quiet=True)
    assert list_stores(small_disk) == []
    assert leavings(small_disk) == []


def test_all_of_a_store_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    # A power cut keeps what was synced. At the rename every file must have been, after its last write, and the
    # directory after its last change.
    synced, missing = {}, []
    fsync, rename = os.fsync, os.rename

    def state(status):
        return (status.st_size, status.st_mtime_ns)

    def recorded_fsync(handle):
        fsync(handle)
        synced[os.fstat(handle).st_ino] = state(os.fstat(handle))

    def checked_rename(source, target):
        for path in (source, *source.iterdir()):
            if synced.get(path.stat().st_ino) != state(path.stat()):
                missing.append(path.name)
        rename(source, target)

    monkeypatch.setattr("os.fsync", recorded_fsync)
    monkeypatch.setattr("os.rename", checked_rename)
    store = collect(StoreConfig("pong", steps=16), tmp_path, quiet=True)
    assert missing == []
    assert synced[tmp_path.joinpath("pong").stat().st_ino] == state(store.path.parent.stat())


def test_a_read_only_data_directory_is_a_clear_error(small_disk):
    import subprocess

    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(UserError, match="cannot collect into .*: Read-only file system"):
        collect(StoreConfig("pong", steps=80), small_disk, quiet=True)


def test_a_file_in_the_place_of_the_data_directory_is_a_clear_error(tmp_path):
    (tmp_path / "data").write_text("not a directory")
    with pytest.raises(UserError, match="cannot collect into"):
        collect(StoreConfig("pong", steps=80), tmp_path / "data", quiet=True)
