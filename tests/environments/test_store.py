"""A store gives its frames back exactly, in gray and in colour, and notices every changed byte."""

import json

import numpy as np
import pytest

from manicap.atari.integrity import open_store, verify_store
from manicap.core.errors import UserError
from manicap.environments.integrity import open_environment_store, verify_environment_store
from manicap.environments.recording import record_store
from manicap.play.integrity import MANIFEST
from manicap.play.pictures import gray_of


def test_gray_is_luma_rounded_for_every_colour():
    # In whole numbers, of 64 shades of blue at a time: floor((299 R + 587 G + 114 B) / 1000 + 1/2).
    red, green = np.arange(256)[:, None, None], np.arange(256)[:, None]
    for blue in np.arange(256).reshape(4, 64):
        colours = np.stack(np.broadcast_arrays(red, green, blue), -1).astype(np.uint8)
        np.testing.assert_array_equal(gray_of(colours), (299 * red + 587 * green + 114 * blue + 500) // 1000)


def test_frames_are_indexed_like_an_array(record_here):
    store = record_here("Walk")
    every = store.frames[:]
    assert store.frames.shape == every.shape == (60, 48, 64)
    np.testing.assert_array_equal(every, gray_of(store.colour_frames(slice(None))))
    np.testing.assert_array_equal(store.frames[[5, 2], 10:20], every[[5, 2], 10:20])
    np.testing.assert_array_equal(store.frames[7], every[7])
    assert store.colour_frames([[1, 2], [3, 4]]).shape == (2, 2, 48, 64, 3)
    chunks = list(store.frame_chunks(store.rows[10:20], size=4))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate(chunks), store.colour_frames(slice(10, 20)))


def test_a_gray_store_has_the_gray_of_the_colour_store(record_here):
    gray, colour = (record_here("Walk", colour=each, frame_size=(60, 50)) for each in (False, True))
    np.testing.assert_array_equal(gray.frames[:], colour.frames[:])
    assert not gray.has_colour
    assert colour.has_colour
    assert next(gray.frame_chunks(gray.rows)).shape == (60, 60, 50)
    with pytest.raises(UserError, match="holds gray frames only: record it in colour"):
        gray.colour_frames(0)


def test_every_file_is_checked_and_damage_is_located(record_here):
    # 2,100 rows are three slices: 0 to 1023, 1024 to 2047, 2048 to 2099.
    store = record_here("Walk", steps=2100)
    for name, entry in store.manifest["files"].items():
        path = store.path / name
        content = path.read_bytes()
        place = entry["slices"][1 if len(entry["slices"]) == 3 else 0][0] + 5
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        where = ", rows 1024 to 2047" if len(entry["slices"]) == 3 else ""
        with pytest.raises(
            UserError, match=rf"not a sound store: {name} has changed \(sha256 of bytes \d+ to \d+{where}"
        ):
            open_environment_store(store.path)
        assert len(verify_environment_store(store.path)) == 1
        path.write_bytes(content[:-1])
        with pytest.raises(UserError, match=rf"{name} has {len(content) - 1} bytes, expected {len(content)}"):
            open_environment_store(store.path)
        path.write_bytes(content)
    assert [len(entry["slices"]) for entry in store.manifest["files"].values()].count(3) == 4
    assert verify_environment_store(store.path) == []


def test_a_damaged_manifest_and_a_newer_format(record_here):
    store = record_here("Walk")
    path = store.path / MANIFEST
    content = path.read_text()
    path.write_text(content.replace('"frames": 60', '"frames": 61'))
    with pytest.raises(UserError, match="manifest.json is damaged"):
        open_environment_store(store.path)
    path.unlink()
    with pytest.raises(UserError, match="manifest.json is missing"):
        open_environment_store(store.path)

    from manicap.core.sealed import write_sealed

    found = {key: value for key, value in json.loads(content).items() if key != "checksum"}
    write_sealed(path, {**found, "format": 2})
    with pytest.raises(UserError, match="has format 2, and this manicap reads up to 1: upgrade manicap"):
        open_environment_store(store.path)


def test_a_store_of_a_game_is_not_taken_for_damage(pong_store, record_here):
    sentence = "is a store of a game, and one of an environment is needed; 'manicap data list' shows which there are"
    with pytest.raises(UserError, match=sentence):
        open_environment_store(pong_store.path)
    recorded = record_here("Walk")
    for path, verify in ((recorded.path, verify_store), (pong_store.path, verify_environment_store)):
        assert "and one of a" in verify(path)[0]
    with pytest.raises(UserError, match="is a store of an environment, and one of a game is needed"):
        open_store(recorded.path)


def test_a_place_without_a_store_is_told(tmp_path):
    with pytest.raises(UserError, match="there is no store of an environment at"):
        open_environment_store(tmp_path / "nothing")


def test_a_store_that_was_moved_to_anothers_place_is_not_used(record_here, tmp_path):
    store, other = record_here("Walk"), record_here("Walk", seed=1)
    store.path.rename(store.path.parent / "away")
    other.path.rename(store.path)
    with pytest.raises(UserError, match="it was moved there; move it back"):
        record_store(store.config, tmp_path / "data")
