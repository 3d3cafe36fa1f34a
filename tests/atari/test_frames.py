"""Frames in stores: compressed one by one, gray and colour from the same bytes, read like an array."""

import builtins
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.emulator import FRAME_SKIP, Lane
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.palette import GRAY, RGB
from manicap.atari.screens import BOTH, ScreenCoder, Shades
from manicap.atari.store import NO_ACTION, StoreConfig
from manicap.core.errors import UserError


class RecordingLane(Lane):
    """Keeps the screens as ALE itself turns them into gray and colour."""

    def _skip_frames(self, action):
        reward = sum(self.ale.act(action) for _ in range(FRAME_SKIP - 1))
        gray, colour = self.ale.getScreenGrayscale(), self.ale.getScreenRGB()
        self.ale.getScreen(self.screens[0])
        reward += self.ale.act(action)
        self.gray = np.maximum(gray, self.ale.getScreenGrayscale())
        self.colour = np.maximum(colour, self.ale.getScreenRGB())
        self.ale.getScreen(self.screens[1])
        self.ale.getRAM(self.ram)
        return reward


# Pong flickers little, Seaquest much; Ms Pacman has the most colours, and its lives end without a button to fire.
@pytest.mark.parametrize("game", ["pong", "seaquest", "ms_pacman"])
def test_gray_and_colour_are_those_of_the_emulator(game, tmp_path):
    store = collect(StoreConfig(game, steps=300, lanes=1, seed=3), tmp_path, quiet=True)
    lane = RecordingLane(find_game(game), seed=3, lane=0)
    lane.reset()
    rows = np.arange(300)
    gray, colour = store.frames[:], store.frames.read(rows, colour=True)
    before = store.steps[0]
    for row in range(300):
        action = lane.random_action()
        ended = lane.step(action)
        if row:
            assert before["action"] == action
            assert before["reward"] == lane.reward
            assert before["ended"] == ended + lane.game_over
        before = store.steps[row]
        assert before["lives"] == lane.ale.lives()
        if not (ended and lane.game_over and not lane._has_fire):  # a new game begins with one screen, not two
            assert np.array_equal(gray[row], lane.gray)
            assert np.array_equal(colour[row], lane.colour)
    assert before["action"] == NO_ACTION


def test_a_life_and_a_game_end_where_the_episodes_say(tmp_path):
    store = collect(StoreConfig("breakout", steps=1200, lanes=2, seed=0), tmp_path, quiet=True)
    later = store.episodes["start"][np.isin(store.episodes["start"], (0, 600), invert=True)]
    assert np.flatnonzero(store.steps["ended"]).tolist() == (later - 1).tolist()
    # Five lives: after a game the next one begins with all of them.
    over = np.flatnonzero(store.steps["ended"] == 2)
    assert len(over) > 0
    assert (store.steps["lives"][over] == 1).all()
    assert (store.steps["lives"][over + 1] == 5).all()


@pytest.mark.parametrize(
    "key",
    [
        7,
        -1,
        slice(5, 100, 7),
        slice(None, None, -300),
        np.array([3, 3, 900]),
        [[1, 2], [-1, 0]],
        np.array([], np.int64),
        [],
        np.array([250, 3], np.uint8),
        np.arange(2400) % 500 == 7,
        ...,
        (slice(0, 3), slice(10, 20), 5),
        (4, 10),
    ],
    ids=str,
)
def test_frames_are_indexed_like_an_array(pong_store, key):
    whole = np.array(pong_store.frames)
    assert pong_store.frames.shape == whole.shape
    assert pong_store.frames.nbytes == whole.nbytes
    found = pong_store.frames[key]
    assert found.shape == whole[key].shape
    assert np.array_equal(found, whole[key])


@pytest.mark.parametrize(
    "key", [2400, -2401, np.ones(3, bool), None, (..., 0), ([0, 1], [0, 1]), 1.5, "x"], ids=lambda key: repr(key)[:20]
)
def test_what_is_no_row_is_an_error(pong_store, key):
    with pytest.raises(IndexError):
        pong_store.frames[key]


def test_colour_takes_rows_as_gray_does(pong_store):
    mask = np.zeros(len(pong_store), bool)
    mask[[2, 5]] = True
    expected = pong_store.colour_frames(np.array([2, 5]))
    assert expected.shape == (2, 210, 160, 3)
    for key in (mask, [2, 5], slice(2, 6, 3), np.array([2, 5], np.uint8), [2 - 2400, 5 - 2400]):
        assert np.array_equal(pong_store.colour_frames(key), expected)
    assert np.array_equal(pong_store.colour_frames([[2], [5]]), expected[:, None])
    assert np.array_equal(pong_store.colour_frames(5), expected[1])


def test_a_row_that_cannot_be_decoded_is_named(pong_store, tmp_path):
    frames = pong_store.frames
    content = bytearray((pong_store.path / "frames.zst").read_bytes())
    start = int(pong_store.steps["offset"][17])
    content[start : start + 4] = b"\0\0\0\0"  # the magic number of zstd
    (tmp_path / "frames.zst").write_bytes(content)
    damaged = type(frames)(tmp_path / "frames.zst", pong_store.steps, np.load(pong_store.path / "colours.npy"))
    assert np.array_equal(damaged[16], frames[16])
    with pytest.raises(UserError, match=r"frames.zst: row 17 cannot be decoded"):
        damaged[10:20]


def test_without_the_codec_a_store_says_what_to_install(pong_store, monkeypatch):
    plain = builtins.__import__

    def without(name, *arguments, **options):
        if name == "zstandard":
            raise ImportError("No module named 'zstandard'")
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    store = open_store(pong_store.path)
    with ThreadPoolExecutor(1) as new_thread, pytest.raises(UserError, match="pip install zstandard"):
        new_thread.submit(lambda: store.frames[0]).result()  # this one has loaded it already


def screens(*pairs):
    """Two screens whose pixels have these palette indices, in order; then black up to a multiple of eight."""
    black = [(0, 0)] * (-len(pairs) % 8)
    first, second = np.array([*pairs, *black], np.uint8).T.copy()
    return first, second


def decoded(coder, table, codes):
    planes = np.empty((1, len(codes)), np.uint8)
    Shades(coder.tables, colour=False).paint(table, codes, planes)
    return planes[0]


def test_pairs_get_odd_codes_and_equal_pixels_keep_their_index():
    coder = ScreenCoder()
    table, codes = coder.encode(*screens((4, 4), (0, 14), (14, 0), (0, 14), (200, 200), (0, 0)))
    assert table == 0
    assert codes[[0, 4]].tolist() == [4, 200]
    assert codes[1] % 2 == codes[2] % 2 == 1
    assert codes[1] == codes[3] != codes[2]
    # Index 14 is the brightest gray, 0 is black: the maximum is the same either way.
    assert decoded(coder, table, codes)[1:4].tolist() == [0xEC] * 3


def test_a_full_table_is_followed_by_another_and_earlier_codes_stay():
    coder, even = ScreenCoder(), np.arange(0, 256, 2)
    first = coder.encode(*screens(*((0, index) for index in even[1:101])))
    second = coder.encode(*screens(*((2, index) for index in even[2:102])))
    assert (first[0], second[0]) == (0, 1)
    assert coder.tables.shape == (2, 128, 2)
    again = coder.encode(*screens((0, 14)))
    assert again[0] == 1
    pairs = coder.tables[0][(first[1][:100] - 1) // 2]
    assert pairs.tolist() == [[0, index] for index in even[1:101].tolist()]


@pytest.mark.parametrize("num_tables", [1, 100])
@pytest.mark.parametrize("colour", [False, True])
def test_codes_are_painted_alike_in_stores_of_few_and_of_many_tables(num_tables, colour):
    generator = np.random.default_rng(0)
    tables = 2 * generator.integers(0, 128, (num_tables, 128, 2)).astype(np.uint8)
    codes = generator.integers(0, 256, 3360).astype(np.uint8)
    planes = np.empty((3 if colour else 1, 3360), np.uint8)
    Shades(tables, colour).paint(num_tables - 1, codes, planes)
    shades = RGB if colour else GRAY[:, None]
    for code, found in zip(codes.tolist(), planes.T, strict=True):
        pair = tables[-1, code // 2] if code % 2 else (code, code)
        assert found.tolist() == np.maximum(shades[pair[0]], shades[pair[1]]).tolist()


def test_more_pairs_in_a_step_than_a_table_has_keep_both_screens():
    coder = ScreenCoder()
    first, second = screens(*((0, index) for index in range(2, 256, 2)), (2, 0), (4, 0))
    table, codes = coder.encode(first, second)
    assert table == BOTH
    assert codes.tolist() == [*second.tolist(), *first.tolist()]
