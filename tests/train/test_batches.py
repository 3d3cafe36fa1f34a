import math
from typing import ClassVar

import numpy as np
import pytest
import torch

from manicap.core.errors import UserError
from manicap.domains.play.samples import DecodedOnce, FrameSamples, FrameSource
from manicap.play.protocol import FIXED, REFERENCE
from manicap.play.splits import pretrain_splits
from manicap.play.views import View
from manicap.train.batches import Batches


@pytest.fixture
def train_part(breakout_store):
    return pretrain_splits(breakout_store, FIXED, seed=0).train


def life_of(store, rows):
    return np.searchsorted(store.episodes["start"], rows, side="right") - 1


def test_pairs_never_cross_the_end_of_a_life_under_fixed(breakout_store, train_part):
    batches = Batches(FrameSamples(breakout_store, train_part, FIXED, 2), 16, seed=0, split="train")
    for rows in batches.epoch(0):
        assert (rows[:, 1] == rows[:, 0] + 1).all()
        assert (life_of(breakout_store, rows[:, 0]) == life_of(breakout_store, rows[:, 1])).all()


def test_pairs_wrap_inside_a_life_under_reference(breakout_store, train_part):
    samples = FrameSamples(breakout_store, train_part, REFERENCE, 2)
    rows = samples.rows(np.arange(len(samples.first)))
    assert (life_of(breakout_store, rows[:, 0]) == life_of(breakout_store, rows[:, 1])).all()
    wrapped = rows[rows[:, 1] != rows[:, 0] + 1]
    assert len(wrapped) == train_part.num_episodes
    assert (wrapped[:, 1] == breakout_store.episodes["start"][life_of(breakout_store, wrapped[:, 0])]).all()


@pytest.mark.parametrize("frames", [1, 3, 10])
def test_windows_stay_inside_a_life_and_reach_its_end(breakout_store, train_part, frames):
    samples = FrameSamples(breakout_store, train_part, FIXED, frames)
    rows = samples.rows(np.arange(len(samples.first)))
    assert rows.shape[1] == frames
    assert (life_of(breakout_store, rows[:, 0]) == life_of(breakout_store, rows[:, -1])).all()
    ends = breakout_store.episodes["start"] + breakout_store.episodes["length"] - 1
    assert set(np.unique(train_part.episodes)) == set(life_of(breakout_store, rows[np.isin(rows[:, -1], ends), 0]))


def test_an_epoch_shows_every_pair_at_most_once_and_drops_less_than_a_batch(breakout_store, train_part):
    samples = FrameSamples(breakout_store, train_part, FIXED, 2)
    batches = Batches(samples, 16, seed=0, split="train")
    seen = np.concatenate([rows[:, 0] for rows in batches.epoch(0)])
    assert len(np.unique(seen)) == len(seen)
    assert len(samples.first) - len(seen) < 16


def test_the_order_depends_on_seed_and_epoch_alone(breakout_store, train_part):
    batches = Batches(FrameSamples(breakout_store, train_part, FIXED, 2), 16, seed=0, split="train")
    first = list(batches.epoch(3))
    assert all(np.array_equal(a, b) for a, b in zip(first, batches.epoch(3), strict=True))
    assert not np.array_equal(first[0], next(iter(batches.epoch(4))))
    # Starting in the middle gives the rest of the same epoch.
    assert all(np.array_equal(a, b) for a, b in zip(first[5:], batches.epoch(3, start=5), strict=True))


def test_reference_draws_lives_equally_often_whatever_their_length(breakout_store, train_part):
    samples = FrameSamples(breakout_store, train_part, REFERENCE, 2)
    rng = np.random.default_rng(0)
    lives = np.concatenate([life_of(breakout_store, samples.rows(samples.order(rng))[:, 0]) for _ in range(40)])
    counts = np.unique(lives, return_counts=True)[1]
    assert len(counts) == train_part.num_episodes
    expected = len(lives) / len(counts)
    # Each count is binomial: six standard deviations are never reached by chance.
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_ranks_share_every_batch_without_overlap(breakout_store, train_part):
    samples = FrameSamples(breakout_store, train_part, FIXED, 2)
    whole = Batches(samples, 16, 0, "train")
    parts = [Batches(samples, 16, 0, "train", rank, 2) for rank in range(2)]
    for rows, first, second in zip(whole.epoch(0), parts[0].epoch(0), parts[1].epoch(0), strict=True):
        assert np.array_equal(rows, np.concatenate([first, second]))


def test_a_batch_that_does_not_divide_over_the_processes_is_refused(breakout_store, train_part):
    with pytest.raises(UserError, match="a batch of 16 cannot be divided among 3 processes"):
        Batches(FrameSamples(breakout_store, train_part, FIXED, 2), 16, 0, "train", 0, 3)


def test_frames_from_the_device_equal_frames_from_the_map(breakout_store):
    rows = np.array([[5, 6], [2399, 0]])
    cpu = torch.device("cpu")
    mapped, resident = (FrameSource(breakout_store, cpu, resident=resident).take(rows) for resident in (False, True))
    assert mapped.shape == (2, 2, 1, 210, 160)
    assert torch.equal(mapped, resident)
    assert torch.equal(mapped[1, 0, 0], torch.from_numpy(np.array(breakout_store.frames[2399])))


class CountingView(View):
    """Notes the rows that it is asked for."""

    asked: ClassVar[list[int]] = []

    def read(self, store, rows):
        self.asked.extend(rows.ravel().tolist())
        return super().read(store, rows)


@pytest.mark.parametrize("colour", [False, True])
def test_the_first_frames_of_a_store_are_decoded_once_and_the_others_every_time(breakout_store, colour):
    CountingView.asked.clear()
    view = CountingView(colour)
    decoded = DecodedOnce(breakout_store, view, room=1000 * math.prod(view.shape))  # rows 0 to 999 are kept
    for rows in (np.array([[5, 999], [1000, 5]]), np.array([[999, 5], [5, 1000]]), np.array([[999], [6]])):
        assert np.array_equal(decoded[rows], View(colour).read(breakout_store, rows))
    assert sorted(CountingView.asked) == [5, 6, 999, 1000, 1000]


def test_without_room_every_frame_is_decoded_as_it_is_asked_for(breakout_store):
    rows = np.array([[0, 1], [2399, 2398]])
    frames = FrameSource(breakout_store, torch.device("cpu"), View(stack=4), kept_bytes=0).take(rows)
    assert np.array_equal(frames, View(stack=4).read(breakout_store, rows))
