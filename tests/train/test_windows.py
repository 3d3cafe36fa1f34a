"""Windows of many frames (CPC): how many make an epoch, where they begin and end, how often each is drawn.

The 2019 code keeps the lives of at least T frames, draws T times as many windows as there are such lives, first a life,
then one of its len - T + 1 beginnings, and drops the last, incomplete batch.
"""

import numpy as np
import pytest

from manicap.atari.convert import write_gray_store
from manicap.atari.integrity import open_store
from manicap.atari.store import EPISODE, StoreConfig
from manicap.core.errors import UserError
from manicap.domains.play.samples import FrameSamples, windows_per_epoch
from manicap.play.protocol import FIXED, REFERENCE
from manicap.play.splits import Part
from manicap.train.batches import Batches

LENGTHS = (9, 10, 11, 35, 9, 40)
T = 10
# Beginnings of windows of 10 frames: none in lives of 9, then 1, 2, 26 and 31.
BEGINNINGS = [0, 1, 2, 26, 0, 31]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Six lives of one lane, of the lengths above."""
    path = tmp_path_factory.mktemp("windows") / "pong" / "handmade"
    path.mkdir(parents=True)
    config = StoreConfig("pong", steps=sum(LENGTHS), lanes=1)
    episodes = np.zeros(len(LENGTHS), EPISODE)
    episodes["length"], episodes["start"] = LENGTHS, np.cumsum([0, *LENGTHS[:-1]])
    frames, ram = np.zeros((config.steps, 210, 160), np.uint8), np.zeros((config.steps, 128), np.uint8)
    write_gray_store(path, config, [frames], ram, episodes)
    return open_store(path)


@pytest.fixture(scope="module")
def part():
    return Part("train", np.arange(sum(LENGTHS)), np.repeat(np.arange(len(LENGTHS)), LENGTHS))


@pytest.mark.parametrize("protocol", [FIXED, REFERENCE], ids=lambda protocol: protocol.name)
def test_an_epoch_has_T_windows_for_every_life_of_T_frames(store, part, protocol):
    # Four lives are long enough: 4 x 10 windows, 5 batches of 8. Every frame once would be 114 // 10 = 11 windows.
    samples = FrameSamples(store, part, protocol, T)
    assert samples.per_epoch == 40
    batches = Batches(samples, 8, seed=0, split="train")
    assert batches.num_batches == 5
    assert sum(len(rows) for rows in batches.epoch(0)) == 40


def test_the_papers_pong_has_as_many_steps_as_the_2019_code():
    # 80,000 training frames in 106 games, sequences of 100, batches of 64: 106 x 100 // 64 = 165 steps; a pass over the
    # frames would be 800 // 64 = 12.
    assert windows_per_epoch(106, 80_000, 100) // 64 == 165


def test_short_windows_still_show_as_many_frames_as_there_are():
    # The preset quick: 12 games of 800 frames, windows of 16. T for every life would be 192 windows, 3 steps.
    assert windows_per_epoch(12, 9_600, 16) == 600
    # At 100 frames lives must be longer than 10,000 before this counts.
    assert windows_per_epoch(3, 30_000, 100) == 300
    assert windows_per_epoch(3, 30_300, 100) == 303


@pytest.mark.parametrize("protocol", [FIXED, REFERENCE], ids=lambda protocol: protocol.name)
def test_windows_begin_at_every_place_that_leaves_T_frames_of_the_life(store, part, protocol):
    samples = FrameSamples(store, part, protocol, T)
    starts = store.episodes["start"]
    expected = [start + i for start, count in zip(starts, BEGINNINGS, strict=True) for i in range(count)]
    rows = samples.rows(np.arange(len(samples.first)))
    assert rows[:, 0].tolist() == expected
    assert (np.diff(rows, axis=1) == 1).all()
    # All are drawn, and nothing else: 60 windows, 40 x 100 draws.
    drawn = np.concatenate([samples.order(np.random.default_rng(i)) for i in range(100)])
    assert np.array_equal(np.unique(samples.rows(drawn)[:, 0]), expected)


def test_fixed_draws_every_window_equally_often(store, part):
    samples = FrameSamples(store, part, FIXED, T)
    # 40 of 60 windows: none twice.
    assert len(np.unique(samples.order(np.random.default_rng(0)))) == 40
    # Lives of 10 and 11 frames have 3 windows, and an epoch has 20: each comes 6 or 7 times.
    short = FrameSamples(store, Part("train", *few_windows(store)), FIXED, T)
    assert (len(short.first), short.per_epoch) == (3, 20)
    counts = np.bincount(short.order(np.random.default_rng(0)))
    assert counts.tolist() in ([7, 7, 6], [7, 6, 7], [6, 7, 7])


def few_windows(store):
    """Rows and lives of the second and third life: 1 + 2 windows, 2 x 10 in an epoch."""
    rows = np.arange(9, 30)
    return rows, np.searchsorted(store.episodes["start"], rows, side="right") - 1


def test_reference_draws_every_life_equally_often(store, part):
    samples = FrameSamples(store, part, REFERENCE, T)
    drawn = np.concatenate([samples.order(np.random.default_rng(i)) for i in range(100)])
    life = np.searchsorted(store.episodes["start"], samples.rows(drawn)[:, 0], side="right") - 1
    counts = np.bincount(life, minlength=6)
    # 4,000 draws over four lives: 1,000 each, and six binomial deviations (27) are never reached by chance.
    assert counts[[0, 4]].tolist() == [0, 0]
    assert (np.abs(counts[[1, 2, 3, 5]] - 1000) < 6 * 27.4).all()


@pytest.mark.parametrize("protocol", [FIXED, REFERENCE], ids=lambda protocol: protocol.name)
def test_a_resumed_epoch_goes_on_with_the_same_windows(store, part, protocol):
    batches = Batches(FrameSamples(store, part, protocol, T), 8, seed=3, split="train")
    whole = list(batches.epoch(2))
    again = Batches(FrameSamples(store, part, protocol, T), 8, seed=3, split="train")
    assert all(np.array_equal(a, b) for a, b in zip(whole[3:], again.epoch(2, start=3), strict=True))
    assert not np.array_equal(whole[0], next(iter(batches.epoch(1))))


@pytest.mark.parametrize("protocol", [FIXED, REFERENCE], ids=lambda protocol: protocol.name)
def test_lives_that_are_all_too_short_are_refused(store, part, protocol):
    with pytest.raises(UserError, match=r"0 samples of 41 frames.*use shorter sequences or use a smaller batch"):
        Batches(FrameSamples(store, part, protocol, 41), 8, seed=0, split="train")
