import contextlib
import os
import re
import shutil

import numpy as np
import pytest
import torch

from manicap.atari.collect import collect
from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store, verify_store
from manicap.atari.ram import block_starts, read_ram, write_ram
from manicap.atari.store import FILES, StoreConfig, list_stores, remove_store, store_path, write_manifest
from manicap.core.errors import UserError
from manicap.core.sealed import write_sealed
from manicap.play import integrity
from manicap.play.integrity import STAMPS

SMALL = StoreConfig("breakout", steps=403, lanes=8, seed=5)


def tree_bytes(path):
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if not file.name.startswith(".")}


def test_the_bytes_do_not_depend_on_the_number_of_workers_and_repeat(tmp_path):
    stores = [collect(SMALL, tmp_path / str(i), workers, quiet=True) for i, workers in enumerate((1, 3, 3))]
    contents = [tree_bytes(store.path) for store in stores]
    assert set(contents[0]) == {*FILES[3], "manifest.json"}
    assert contents[0] == contents[1] == contents[2]


def test_a_store_holds_what_its_lanes_play(tmp_path):
    # 403 steps over 8 lanes: the first three lanes play 51, the others 50.
    store = collect(SMALL, tmp_path, quiet=True)
    assert store.frames.shape == (403, 210, 160)
    assert store.ram.shape == (403, 128)
    row = 0
    for index, steps in enumerate([51, 51, 51, 50, 50, 50, 50, 50]):
        lane = Lane(find_game("breakout"), seed=5, lane=index)
        lane.reset()
        starts = []
        for step in range(steps):
            ended = lane.step(lane.random_action())
            if ended or step == 0:
                starts.append(row)
                before = lane.ram_at_end if ended else lane.ram
                episode = store.episodes[store.episodes["start"] == row][0]
                assert np.array_equal(episode["ram_before"], before)
            assert np.array_equal(store.frames[row], lane.frame)
            assert np.array_equal(store.ram[row], lane.ram)
            row += 1
        assert store.episodes["start"][store.episodes["lane"] == index].tolist() == starts
    assert row == 403
    ends = store.episodes["start"] + store.episodes["length"]
    assert ends[:-1].tolist() == store.episodes["start"][1:].tolist()
    assert ends[-1] == 403


def test_a_second_request_plays_nothing(tmp_path, monkeypatch):
    first = collect(SMALL, tmp_path, quiet=True)
    monkeypatch.setattr("manicap.atari.collect._build", lambda *_: pytest.fail("collected again"))
    assert collect(SMALL, tmp_path, quiet=True).path == first.path


def test_a_policy_of_your_own_decides_the_actions(tmp_path):
    seen = []

    def always_right(frame):
        seen.append(frame)
        return 2

    config = StoreConfig("breakout", steps=40, lanes=2, policy="always-right")
    store = collect(config, tmp_path, policy=always_right, quiet=True)
    assert len(seen) == 40
    assert seen[0].shape == (210, 160)
    assert seen[0].dtype == np.uint8
    # The paddle (RAM 72) moves right to the wall and stays there: it never goes back.
    paddle = store.ram[:20, 72].astype(int)
    assert (np.diff(paddle) >= 0).all()
    assert paddle[-1] > paddle[0]


def test_a_policy_and_its_name_go_together(tmp_path):
    with pytest.raises(UserError, match="needs a name of its own"):
        collect(StoreConfig("pong", steps=40), tmp_path, policy=lambda frame: 0)
    with pytest.raises(UserError, match="needs a function"):
        collect(StoreConfig("pong", steps=40, policy="mine"), tmp_path)


def test_an_action_the_game_lacks_is_named(tmp_path):
    config = StoreConfig("pong", steps=40, policy="mine", lanes=1)
    for action, shown in ((9, "9"), (1.7, "1.7"), (None, "None")):
        with pytest.raises(UserError, match=f"the policy returned {shown}; the game has actions 0 to 5"):
            collect(config, tmp_path, policy=lambda frame, action=action: action, quiet=True)
    assert list_stores(tmp_path) == []
    actions = [1, np.int64(1), np.array(1), torch.tensor(1)]
    played = [collect(config, tmp_path / str(i), policy=lambda _, a=a: a, quiet=True) for i, a in enumerate(actions)]
    assert len({store.fingerprint for store in played}) == 1


def test_all_config_problems_are_told_at_once(tmp_path):
    with pytest.raises(UserError, match=r"seed must not be negative, got -1; steps must be at least the number"):
        collect(StoreConfig("pong", steps=3, seed=-1), tmp_path)


@pytest.fixture
def store_copy(pong_store, tmp_path):
    target = tmp_path / "pong" / pong_store.path.name
    shutil.copytree(pong_store.path, target)
    return target


def truncate(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def flip_one_bit(path):
    # In the middle; of the manifest, in the first digit of a hash.
    place = path.stat().st_size // 2
    if path.suffix == ".json":
        place = re.search(rb"[0-9a-f]{64}", path.read_bytes()).start()
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("name", [*FILES[3], "manifest.json"])
@pytest.mark.parametrize("damage", [truncate, flip_one_bit, lambda path: path.unlink()], ids=["cut", "flip", "gone"])
def test_a_damaged_file_is_named_and_readers_refuse_the_store(store_copy, name, damage):
    assert verify_store(store_copy) == []
    damage(store_copy / name)
    faults = verify_store(store_copy)
    if name == "manifest.json" and damage is truncate:
        # Its last byte is a newline: the JSON still says the same.
        assert faults == []
        return
    assert len(faults) >= 1
    # A changed hash in the manifest looks like a changed file: the one that it is the hash of.
    named = ["manifest.json", *FILES[3]] if name == "manifest.json" else [name]
    assert all(any(each in fault for each in named) for fault in faults)
    with pytest.raises(UserError, match="not a sound store"):
        open_store(store_copy)


def test_a_store_moved_to_another_place_opens(store_copy, pong_store):
    assert open_store(store_copy).fingerprint == pong_store.fingerprint


@pytest.mark.parametrize("name", [*FILES[3], "manifest.json"])
def test_a_flipped_bit_is_noticed_at_the_next_open_though_the_time_stamp_was_set_back(store_copy, name):
    open_store(store_copy)
    before = (store_copy / name).stat()
    flip_one_bit(store_copy / name)
    os.utime(store_copy / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UserError, match=f"not a sound store: {name}"):
        open_store(store_copy)


def test_no_byte_of_the_manifest_can_change_what_a_store_says_of_itself(store_copy):
    content = (store_copy / "manifest.json").read_bytes()
    original = open_store(store_copy).manifest
    rng = np.random.default_rng(0)
    for place in rng.choice(len(content), 60, replace=False):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        (store_copy / "manifest.json").write_bytes(changed)
        with contextlib.suppress(UserError):
            assert open_store(store_copy).manifest == original


@pytest.mark.parametrize("text", ["[]", "{}", "null", "[" * 100_000, '{"seal": 1}', "\xff"])
def test_a_manifest_of_another_shape_is_one_sentence(store_copy, text):
    (store_copy / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match="manifest.json is damaged"):
        open_store(store_copy)


def test_arrays_of_another_type_or_shape_are_refused_whatever_the_manifest_says(store_copy):
    store = open_store(store_copy)
    for name, wrong in (
        ("steps.npy", store.steps[:-1]),
        ("steps.npy", store.steps[::-1].copy()),
        ("colours.npy", np.zeros((1, 64, 2), np.uint8)),
        ("episodes.npy", store.episodes[::-1].copy()),
        ("episodes.npy", store.episodes["start"].copy()),
    ):
        original = (store_copy / name).read_bytes()
        np.save(store_copy / name, wrong)
        write_manifest(store_copy, store.config, len(store.episodes))
        with pytest.raises(UserError, match=name):
            open_store(store_copy)
        (store_copy / name).write_bytes(original)


def test_ram_of_another_length_is_refused_whatever_the_manifest_says(store_copy):
    store = open_store(store_copy)
    for wrong, told in ((store.ram[:1000], "ram.zst does not hold 2400 rows"), (store.ram[:2399], "rows 2048 to 2399")):
        write_ram(store_copy / "ram.zst", wrong)
        write_manifest(store_copy, store.config, len(store.episodes))
        with pytest.raises(UserError, match=told):
            open_store(store_copy).ram  # noqa: B018


def test_ram_comes_back(tmp_path):
    # Two blocks and a part; random bytes grow when they are compressed.
    ram = np.random.default_rng(0).integers(0, 256, (2 * 1024 + 7, 128)).astype(np.uint8)
    write_ram(tmp_path / "ram.zst", ram)
    starts = list(block_starts(tmp_path / "ram.zst"))
    assert len(starts) == 3
    assert np.array_equal(read_ram(tmp_path / "ram.zst", starts, len(ram)), ram)


def test_a_newer_format_is_refused_by_number(store_copy):
    write_sealed(store_copy / "manifest.json", open_store(store_copy).manifest | {"format": 99})
    with pytest.raises(UserError, match="has format 99, and this manicap reads up to 3: upgrade manicap") as told:
        open_store(store_copy)
    assert "remove" not in str(told.value)  # it is sound
    assert "upgrade manicap" in verify_store(store_copy)[0]


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"counts": {}},
        {"counts": {"frames": "x", "episodes": 1}},
        {"files": {}},
        {"files": {name: {"bytes": 5, "slices": [[0, 5]]} for name in FILES[3]}},
    ],
    ids=str,
)
def test_a_sealed_manifest_without_what_it_should_hold_is_damaged(store_copy, change):
    write_sealed(store_copy / "manifest.json", open_store(store_copy).manifest | change)
    with pytest.raises(UserError, match="manifest.json is damaged"):
        open_store(store_copy)


def test_where_no_store_is_nobody_is_told_to_remove_it(tmp_path):
    (tmp_path / "pong").mkdir()
    for path in (tmp_path / "pong", tmp_path / "nothing"):
        with pytest.raises(UserError, match="there is no store at") as told:
            open_store(path)
        assert "remove" not in str(told.value)


def test_a_store_that_was_moved_to_anothers_place_is_not_used(tmp_path):
    store = collect(StoreConfig("pong", steps=40, seed=0), tmp_path, quiet=True)
    other = StoreConfig("pong", steps=40, seed=1)
    store.path.rename(store_path(other, tmp_path))
    with pytest.raises(UserError, match=r"holds a store of .*seed=0.*, not of .*seed=1"):
        collect(other, tmp_path, quiet=True)


def test_a_file_of_the_users_that_is_named_like_a_module_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "random.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert len(collect(StoreConfig("pong", steps=40), tmp_path / "data", quiet=True)) == 40


def test_what_was_recorded_cannot_be_changed(store_copy):
    store = open_store(store_copy)
    for array in (store.steps, store.ram, store.episodes, store.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_only_a_store_is_removed(tmp_path, store_copy):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="does not look like a store"):
        remove_store(tmp_path / "empty")
    (tmp_path / "link").symlink_to(store_copy)
    with pytest.raises(UserError, match="is a link to"):
        remove_store(tmp_path / "link")
    remove_store(store_copy)
    assert not store_copy.exists()
    assert (tmp_path / "empty").is_dir()


def test_what_is_written_while_a_store_is_hashed_is_noticed_next_time(store_copy, monkeypatch):
    (store_copy / STAMPS).unlink()
    content = (store_copy / "frames.zst").read_bytes()
    hash_slice = integrity.sha256_slice

    def hash_and_write(path, start, stop):
        digest = hash_slice(path, start, stop)
        if path.name == "frames.zst" and stop == len(content):  # hashed, and only then damaged
            with path.open("r+b") as file:  # in place: other slices are being hashed
                file.seek(-1, os.SEEK_END)
                file.write(bytes([content[-1] ^ 1]))
        return digest

    monkeypatch.setattr(integrity, "sha256_slice", hash_and_write)
    open_store(store_copy)
    monkeypatch.setattr(integrity, "sha256_slice", hash_slice)
    with pytest.raises(UserError, match="frames.zst has changed"):
        open_store(store_copy)


def test_the_fingerprint_names_all_arrays(store_copy):
    store = open_store(store_copy)
    write_ram(store_copy / "ram.zst", 255 - store.ram)
    write_manifest(store_copy, store.config, len(store.episodes))
    assert open_store(store_copy).fingerprint != store.fingerprint


def test_other_data_beside_the_stores_is_not_taken_for_one(store_copy, tmp_path):
    (tmp_path / "cifar10" / "cifar-10-batches-bin").mkdir(parents=True)
    assert list_stores(tmp_path) == [store_copy]


def test_a_store_with_a_killed_writers_scratch_file_can_be_removed(store_copy):
    (store_copy / "..verified.json.ab12_x9z.scratch").write_text("{")
    remove_store(store_copy)
    assert not store_copy.exists()


def test_remove_deletes_a_store_and_nothing_else(store_copy, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match=r"does not look like a store \(it holds thesis.tex\)"):
        remove_store(tmp_path / "mine")
    remove_store(store_copy)
    assert not store_copy.exists()
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_frame_chunks_are_the_frames(pong_store):
    chunks = list(pong_store.frame_chunks(np.arange(100, 1205), size=500))
    assert [len(chunk) for chunk in chunks] == [500, 500, 105]
    assert np.array_equal(np.concatenate(chunks), pong_store.frames[100:1205])
