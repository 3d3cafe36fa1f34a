import numpy as np
import pytest

from manicap.atari.collect import collect
from manicap.atari.convert import write_gray_store
from manicap.atari.integrity import open_store
from manicap.atari.store import EPISODE, Store, StoreConfig
from manicap.core.errors import UserError
from manicap.play.protocol import FIXED, REFERENCE, find_protocol
from manicap.play.splits import (
    Part,
    drop_seen_frames,
    entropy,
    frame_pairs,
    pretrain_splits,
    probe_splits,
    read_labels,
    split_episodes,
)


@pytest.fixture
def hand_made_store(tmp_path):
    """Ten episodes of Pong's shape: nine of 65 frames and one of 64. Frame i of the store is filled with i % 256 in its
    first pixel and i // 256 in its second, so that all frames differ; RAM 51 (player_y) counts 0..255."""
    lengths = [65] * 4 + [64] + [65] * 5
    config = StoreConfig("pong", steps=sum(lengths), lanes=2)
    frames = np.zeros((config.steps, 210, 160), np.uint8)
    frames[:, 0, 0], frames[:, 0, 1] = np.arange(config.steps) % 256, np.arange(config.steps) // 256
    ram = np.zeros((config.steps, 128), np.uint8)
    ram[:, 51] = np.arange(config.steps) % 256
    episodes = np.zeros(10, EPISODE)
    episodes["length"] = lengths
    episodes["start"] = np.cumsum([0, *lengths[:-1]])
    episodes["lane"] = [0] * 5 + [1] * 5
    episodes["ram_before"][:, 51] = 200
    path = tmp_path / "pong" / "handmade"
    path.mkdir(parents=True)
    write_gray_store(path, config, [frames], ram, episodes)
    return open_store(path)


def edit_frames(store: Store, edit) -> Store:
    frames = np.array(store.frames)
    edit(frames)
    write_gray_store(store.path, store.config, [frames], np.array(store.ram), store.episodes)
    return open_store(store.path)


def test_episodes_of_64_frames_are_dropped_and_of_65_kept(hand_made_store):
    splits = pretrain_splits(hand_made_store, FIXED, seed=0)
    assert splits.counts["episodes"] == 10
    assert splits.counts["episodes_too_short"] == 1
    assert splits.counts["frames_in_short_episodes"] == 64
    assert 4 not in splits.train.episodes
    assert 4 not in splits.val.episodes


def test_reference_splits_in_lane_order_at_the_floor_of_the_fraction(hand_made_store):
    # 9 episodes: floor(7.2) = 7 for pretraining; floor(6.3) = 6 and floor(7.2) = 7 for probing.
    pretrain = pretrain_splits(hand_made_store, REFERENCE, seed=0)
    assert np.unique(pretrain.train.episodes).tolist() == [0, 1, 2, 3, 5, 6, 7]
    assert np.unique(pretrain.val.episodes).tolist() == [8, 9]
    probe = probe_splits(hand_made_store, REFERENCE, "ari-2020", seed=0)
    assert np.unique(probe.train.episodes).tolist() == [0, 1, 2, 3, 5, 6]
    assert np.unique(probe.val.episodes).tolist() == [7]
    assert np.unique(probe.test.episodes).tolist() == [8, 9]


def test_fixed_shuffles_by_the_seed_and_loses_no_episode(hand_made_store):
    orders = []
    for seed in range(8):
        splits = probe_splits(hand_made_store, FIXED, "ari-2020", seed)
        parts = [set(part.episodes.tolist()) for part in (splits.train, splits.val, splits.test)]
        assert [len(part) for part in parts] == [6, 1, 2]
        assert set.union(*parts) == {0, 1, 2, 3, 5, 6, 7, 8, 9}
        orders.append(tuple(map(frozenset, parts)))
    assert len(set(orders)) > 4
    again = probe_splits(hand_made_store, FIXED, "ari-2020", seed=0)
    assert frozenset(again.test.episodes.tolist()) == orders[0][2]


def test_test_frames_whose_bytes_occur_in_training_are_dropped(hand_made_store):
    # Under `reference` episodes 8 and 9 are the test. Make three of their frames copies of training frames, one of a
    # validation frame (episode 7), and two of each other: only the first four are dropped.
    start = {episode: int(hand_made_store.episodes["start"][episode]) for episode in range(10)}

    def copy(frames):
        frames[start[8] + 0] = frames[start[0]]
        frames[start[8] + 10] = frames[start[1] + 5]
        frames[start[9] + 64] = frames[start[6] + 64]
        frames[start[9] + 1] = frames[start[7] + 2]
        frames[start[9] + 7] = frames[start[8] + 8]

    store = edit_frames(hand_made_store, copy)
    splits = probe_splits(store, REFERENCE, "ari-2020", seed=0)
    assert splits.counts["test_frames_seen_in_training"] == 4
    gone = {start[8], start[8] + 10, start[9] + 64, start[9] + 1}
    assert set(splits.test.rows.tolist()) == set(range(start[8], start[9] + 65)) - gone
    assert len(splits.test.episodes) == 126


def test_a_test_split_of_nothing_but_seen_frames_is_a_clear_error(hand_made_store):
    store = edit_frames(hand_made_store, lambda frames: frames.fill(0))
    with pytest.raises(UserError, match="every frame of the test split .* also occurs in train or val; collect more"):
        probe_splits(store, FIXED, "ari-2020", seed=0)


def test_duplicate_removal_agrees_with_keeping_every_frame_in_a_set(breakout_store):
    rows = np.arange(len(breakout_store))
    seen, part = Part("seen", rows[:1500], rows[:1500] * 0), Part("part", rows[1500:], rows[1500:] * 0)
    kept = drop_seen_frames(breakout_store, part, [seen]).rows
    known = {frame.tobytes() for frame in breakout_store.frames[:1500]}
    expected = [row for row in range(1500, 2400) if breakout_store.frames[row].tobytes() not in known]
    assert kept.tolist() == expected


def test_pairs_stay_inside_a_life_under_fixed_and_wrap_under_reference(hand_made_store):
    part = Part("train", np.r_[0:65, 324:389], np.r_[[0] * 65, [5] * 65])
    first, second = frame_pairs(hand_made_store, part, FIXED)
    assert first.tolist() == [*range(64), *range(324, 388)]
    assert second.tolist() == [*range(1, 65), *range(325, 389)]
    first, second = frame_pairs(hand_made_store, part, REFERENCE)
    assert first.tolist() == part.rows.tolist()
    assert second.tolist() == [*range(1, 65), 0, *range(325, 389), 324]


def test_the_first_label_of_a_life_is_stale_under_reference_only(hand_made_store):
    rows = np.array([64, 65, 66])  # the last of episode 0, the first two of episode 1
    assert read_labels(hand_made_store, rows, "ari-2020", FIXED)["player_y"].tolist() == [64, 65, 66]
    assert read_labels(hand_made_store, rows, "ari-2020", REFERENCE)["player_y"].tolist() == [64, 200, 66]


def test_entropy_in_nats_by_hand():
    # Four equally likely values: log 4. A constant: 0. Three quarters and one quarter: log 4 - 0.75 log 3.
    assert entropy(np.array([0, 1, 2, 255] * 5, np.uint8)) == pytest.approx(np.log(4), rel=1e-15)
    assert entropy(np.full(9, 7, np.uint8)) == 0.0
    assert entropy(np.array([1, 1, 1, 0], np.uint8)) == pytest.approx(np.log(4) - 0.75 * np.log(3), rel=1e-15)


def test_flat_variables_are_dropped_and_counted(hand_made_store):
    splits = probe_splits(hand_made_store, FIXED, "ari-2020", seed=0)
    # Only player_y moves in the store made by hand; the other seven variables of ari-2020's Pong are constant.
    assert splits.variables == ("player_y",)
    assert splits.counts["variables_under_entropy"] == 7
    assert splits.entropies["ball_x"] == 0.0


def test_an_empty_split_says_what_to_change(tmp_path):
    store = collect(
        StoreConfig("breakout", steps=160), tmp_path, quiet=True
    )  # 20 frames a lane: no life is long enough
    with pytest.raises(UserError, match=r"2 splits \(train, val would .* 0 are longer than 64 .*\(now 160\)"):
        pretrain_splits(store, FIXED, seed=0)
    with pytest.raises(UserError, match=r"3 splits \(train, val, test would be empty\): of 8 episodes, 0 are"):
        probe_splits(store, REFERENCE, "ari-2020", seed=0)


def test_reference_refuses_where_the_floor_leaves_a_split_empty_and_fixed_does_not(pong_store):
    long = np.flatnonzero(pong_store.episodes["length"] > 64)[:3]
    names, fractions = ("train", "val", "test"), FIXED.probe_fractions
    parts = split_episodes(pong_store, long, FIXED, fractions, names, seed=0)
    assert [part.num_episodes for part in parts] == [1, 1, 1]
    # floor(2.1) = floor(2.4) = 2: no validation episode.
    with pytest.raises(UserError, match="val would be empty"):
        split_episodes(pong_store, long, REFERENCE, fractions, names, seed=0)


def test_a_real_store_splits_with_its_counts_adding_up(pong_store):
    splits = probe_splits(pong_store, FIXED, "corrected", seed=0)
    counts = splits.counts
    total = counts["frames_train"] + counts["frames_val"] + counts["frames_test"]
    assert (
        total + counts["test_frames_seen_in_training"] + counts["frames_in_short_episodes"] == counts["frames"] == 2400
    )
    assert {"ball_x", "ball_y", "enemy_y", "player_y"} <= set(splits.variables)


def test_an_unknown_protocol_lists_the_known():
    with pytest.raises(
        UserError, match=r"unknown protocol 'fix'; did you mean 'fixed'\? \(3 protocols: fixed, plain, reference\)"
    ):
        find_protocol("fix")
