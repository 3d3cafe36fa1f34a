"""Stores of format 2, with frames as an array: still read, and compressed without losing a byte or a name."""

import json
from pathlib import Path

import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.convert import convert_store
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.leavings import remove_leavings_if_idle
from manicap.atari.store import FILES, StoreConfig
from manicap.core.errors import Failure, UserError
from manicap.core.files import exclusive_lock
from tests.atari.old_store import write_old_store

CONFIG = StoreConfig("pong", steps=200, lanes=2)


def leavings(path):
    """What is beside a store and in it that is not its own."""
    beside = [item.name for item in path.parent.iterdir() if item.name != path.name and item.suffix != ".lock"]
    own = {*open_store(path).files, "manifest.json", ".verified.json"}
    return beside + [item.name for item in path.iterdir() if item.name not in own]


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    return collect(CONFIG, tmp_path_factory.mktemp("collected"), quiet=True)


@pytest.fixture
def old_path(collected, tmp_path):
    """The same play as versions up to 0.1 stored it."""
    return write_old_store(collected, tmp_path)


def test_an_old_store_opens_and_says_what_it_lacks(old_path, collected):
    store = open_store(old_path)
    assert np.array_equal(store.frames, collected.frames)
    assert np.array_equal(next(store.frame_chunks(np.array([7, 3]))), collected.frames[[7, 3]])
    assert verify_store(old_path) == []
    assert collect(CONFIG, old_path.parent.parent, quiet=True).format == 2
    with pytest.raises(UserError, match="no actions and rewards"):
        store.steps  # noqa: B018


def test_a_converted_store_has_the_same_frames_and_fingerprint(old_path, collected):
    old = open_store(old_path)
    kept = {"ram": np.array(old.ram), "episodes": old.episodes, "fingerprint": old.fingerprint}
    new = convert_store(old_path, quiet=True)
    assert (new.format, new.path) == (3, old_path)
    assert np.array_equal(new.frames, collected.frames)
    assert np.array_equal(new.ram, kept["ram"])
    assert np.array_equal(new.episodes, kept["episodes"])
    assert new.fingerprint == kept["fingerprint"]  # runs and caches that name it remain valid
    assert verify_store(old_path) == []
    assert leavings(old_path) == []
    with pytest.raises(UserError, match="no actions and rewards, which were not recorded"):
        new.steps  # noqa: B018
    with pytest.raises(UserError, match="has no colour: collect it again"):
        new.frames.read(np.array([0]), colour=True)
    assert convert_store(old_path, quiet=True).fingerprint == kept["fingerprint"]  # nothing left to do


def test_a_frame_that_does_not_come_back_leaves_the_store_as_it_was(old_path, monkeypatch):
    before = {path.name: path.read_bytes() for path in old_path.iterdir()}
    monkeypatch.setattr("manicap.atari.frames.CompressedFrames._decode", lambda self, rows, found, colour: None)
    with pytest.raises(Failure, match="the store stays as it is"):
        convert_store(old_path, quiet=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in old_path.iterdir() if path.name in before} == before
    assert open_store(old_path).format == 2


def test_damage_without_a_trace_in_the_time_stamps_is_not_compressed(old_path, monkeypatch):
    open_store(old_path)
    stamps = json.loads((old_path / ".verified.json").read_text())
    with (old_path / "frames.npy").open("r+b") as file:
        file.seek(5000)
        file.write(b"\x99\x98")
    monkeypatch.setattr("manicap.play.integrity.file_stamps", lambda *_: stamps)  # as if the disk had decayed
    assert open_store(old_path).format == 2
    with pytest.raises(UserError, match=r"not a sound store: frames.npy has changed .* stays as it is"):
        convert_store(old_path, quiet=True)
    assert (old_path / "frames.npy").exists()
    assert leavings(old_path) == []


def test_a_path_without_a_store_is_refused_and_nothing_is_created(tmp_path):
    with pytest.raises(UserError, match="there is no store at"):
        convert_store(tmp_path / "a" / "b", quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_converted_from_within_its_own_directory(old_path, monkeypatch):
    monkeypatch.chdir(old_path)
    assert convert_store(Path("."), quiet=True).format == 3
    assert sorted(path.name for path in old_path.iterdir()) == sorted([*FILES[3], "manifest.json", ".verified.json"])


def test_a_reader_leaves_what_a_living_process_builds(old_path):
    building = old_path.parent / f".{old_path.name}.building-1"
    building.mkdir()
    with exclusive_lock(old_path.parent / f".{old_path.name}.lock", on_wait=pytest.fail):
        collect(CONFIG, old_path.parent.parent, quiet=True)
        assert building.exists()
    collect(CONFIG, old_path.parent.parent, quiet=True)
    assert not building.exists()


def test_a_reader_who_opened_the_old_store_does_not_take_the_new_files_for_leavings(old_path):
    store = open_store(old_path)
    convert_store(old_path, quiet=True)
    remove_leavings_if_idle(store)
    assert verify_store(old_path) == []
    assert open_store(old_path).format == 3
