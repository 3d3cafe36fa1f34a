import numpy as np
import pytest
from ale_py import Action

from manicap.atari.emulator import Lane, open_ale
from manicap.atari.games import Game, find_game
from manicap.core.errors import UserError


@pytest.fixture(scope="module")
def second_ale():
    return open_ale(find_game("breakout"), seed=0)


def put_in_state_of(lane, ale):
    """Bring a second emulator, driven by hand below, into the lane's state."""
    ale.restoreState(lane.ale.cloneState(include_rng=True))


def test_a_step_is_four_raw_frames_with_the_maximum_of_the_last_two_screens(second_ale):
    lane = Lane(find_game("breakout"), seed=1, lane=0)
    lane.reset()
    for _ in range(50):
        ale, action = second_ale, lane.random_action()
        put_in_state_of(lane, ale)
        if lane.step(action):
            continue
        raw = ale.getMinimalActionSet()[action]
        screens = []
        for _ in range(4):
            ale.act(raw)
            screens.append(ale.getScreenGrayscale())
        assert np.array_equal(lane.frame, np.maximum(screens[2], screens[3]))
        assert np.array_equal(lane.ram, ale.getRAM())


def test_reset_plays_1_to_30_noop_frames_and_fires_where_the_game_can():
    # Freeway has no fire button: the frame number is the number of no-ops. Breakout fires: two steps of 4 frames more.
    counts = {name: _frames_after_resets(name, 200) for name in ("freeway", "breakout")}
    assert min(counts["freeway"]) >= 1
    assert max(counts["freeway"]) <= 30
    assert min(counts["breakout"]) >= 9
    assert max(counts["breakout"]) <= 38
    assert len(set(counts["freeway"])) > 25


def _frames_after_resets(name, times):
    lane = Lane(find_game(name), seed=0, lane=0)
    counts = []
    for _ in range(times):
        lane.reset()
        counts.append(lane.ale.getEpisodeFrameNumber())  # starts at 0 with each game
    return counts


def test_a_lost_life_ends_the_episode_and_keeps_the_game():
    lane = Lane(find_game("breakout"), seed=0, lane=0)
    lane.reset()
    lives, ends = [lane.ale.lives()], 0
    for _ in range(2000):
        ended = lane.step(lane.random_action())
        lives.append(lane.ale.lives())
        # Breakout starts with 5 lives; an episode ends exactly when the count falls, or a new game starts with 5.
        assert ended == (lives[-1] < lives[-2] or (lives[-2] == 1 and lives[-1] == 5))
        ends += ended
    assert ends > 10


def test_the_ram_that_ended_a_life_is_kept(second_ale):
    lane = Lane(find_game("breakout"), seed=0, lane=0)
    lane.reset()
    while True:
        ale, action = second_ale, lane.random_action()
        put_in_state_of(lane, ale)
        if lane.step(action):
            break
    for _ in range(4):
        ale.act(lane.actions[action])
    assert np.array_equal(lane.ram_at_end, ale.getRAM())
    assert not np.array_equal(lane.ram_at_end, lane.ram)


def test_random_actions_leave_out_the_noop_and_reach_every_other():
    lane = Lane(find_game("ms_pacman"), seed=0, lane=0)
    assert lane.actions[0] == Action.NOOP
    assert {lane.random_action() for _ in range(1000)} == set(range(1, 9))


def test_lanes_of_one_seed_play_differently_and_a_lane_plays_the_same_twice():
    def play(lane_index, purpose="pretrain"):
        lane = Lane(find_game("pong"), seed=0, lane=lane_index, purpose=purpose)
        lane.reset()
        rams = []
        for _ in range(60):
            lane.step(lane.random_action())
            rams.append(lane.ram.copy())
        return np.stack(rams)

    assert np.array_equal(play(0), play(0))
    assert not np.array_equal(play(0), play(1))
    assert not np.array_equal(play(0), play(0, "probe"))


def test_a_missing_rom_is_an_error_and_not_the_end_of_the_interpreter():
    with pytest.raises(UserError, match="no readable ROM for 'no_such_game'"):
        open_ale(Game("no_such_game", False, False), seed=0)
