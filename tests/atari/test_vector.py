import os
import signal

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import manicap
from manicap.atari import emulator
from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.palette import GRAY, gray_maximum
from manicap.atari.vector_worker import PURPOSE
from manicap.core.errors import Failure, UserError
from manicap.play.pictures import resize_by_area

ACTIONS = np.random.default_rng(0).integers(0, 4, (200, 2))  # Breakout has four actions


@pytest.fixture
def make():
    """`manicap.make_vec` whose environments are closed after the test."""
    made = []

    def make(*arguments, num_workers=1, **options):
        made.append(manicap.make_vec(*arguments, num_workers=num_workers, **options))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def lanes_of(game, seed, count, **options):
    lanes = [Lane(find_game(game), seed, index, PURPOSE, **options) for index in range(count)]
    for lane in lanes:
        lane.reset()
    return lanes


def test_two_pixels_at_a_time_are_the_maximum_of_two_gray_screens():
    screens = np.random.default_rng(0).integers(0, 256, (2, 210, 160), dtype=np.uint8)
    screens[1, :100] = screens[0, :100]
    assert np.array_equal(gray_maximum(screens), GRAY[screens].max(0))
    screens[1] = screens[0]
    assert np.array_equal(gray_maximum(screens), GRAY[screens[0]])


def test_labels_belong_to_the_frame_also_after_an_automatic_reset(make):
    envs, lanes = make("breakout", 2, annotation_set="ari-2020"), lanes_of("breakout", 3, 2)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    frames, info = envs.reset(seed=3)
    ends = 0
    for actions in ACTIONS:
        # Breakout in ari-2020: the ball is at RAM 99 and 101, the paddle at 72.
        for name, address in (("ball_x", 99), ("ball_y", 101), ("player_x", 72)):
            assert info["labels"][name].tolist() == [lane.ram[address] for lane in lanes]
        assert np.array_equal(frames[:, 0], [lane.frame for lane in lanes])
        ended = [lane.step(int(action)) for lane, action in zip(lanes, actions, strict=True)]
        frames, rewards, terminated, truncated, info = envs.step(actions)
        assert terminated.tolist() == ended
        assert not truncated.any()
        assert rewards.tolist() == [lane.reward for lane in lanes]
        assert info["lives"].tolist() == [lane.lives for lane in lanes]
        for index in np.flatnonzero(ended):
            last = GRAY[lanes[index].screens_at_end].max(0)
            assert np.array_equal(info["final_obs"][index][0], last)
            assert info["final_info"]["labels"]["ball_y"][index] == lanes[index].ram_at_end[101]
            assert info["_final_obs"][index]
            ends += 1
    assert ends > 5


def test_what_is_played_does_not_depend_on_the_number_of_processes(make):
    alone, shared = make("breakout", 3), make("breakout", 3, num_workers=2)
    for seed in (5, None):
        (frames, info), (frames_too, info_too) = alone.reset(seed=seed), shared.reset(seed=seed)
        for actions in np.repeat(ACTIONS[:30], 2, axis=1)[:, :3]:
            assert np.array_equal(frames, frames_too)
            assert all(np.array_equal(info["labels"][name], info_too["labels"][name]) for name in info["labels"])
            (frames, *_, info), (frames_too, *_, info_too) = alone.step(actions), shared.step(actions)
    again, _ = alone.reset(seed=5)
    assert not np.array_equal(again, frames)


def test_returns_are_of_whole_games_and_unclipped(make):
    # Bricks of Breakout's upper rows are worth 4 and 7; a game has five lives, so one ends every fifth episode.
    plain, clipped = make("breakout", 2), make("breakout", 2, clip_rewards=True)
    plain.reset(seed=0)
    clipped.reset(seed=0)
    total, steps, games = np.zeros(2), np.zeros(2, int), 0
    for actions in np.concatenate([ACTIONS] * 3):
        _, rewards, _, _, info = plain.step(actions)
        _, signs, _, _, info_clipped = clipped.step(actions)
        assert np.array_equal(signs, np.sign(rewards))
        total += rewards
        steps += 1
        for index in np.flatnonzero(info.get("_episode", [])):
            assert (info["episode"]["r"][index], info["episode"]["l"][index]) == (total[index], steps[index])
            assert info_clipped["episode"]["r"][index] == total[index]
            total[index] = steps[index] = 0
            games += 1
    assert games >= 2


def test_without_episodic_life_only_the_end_of_the_game_ends_an_episode(make):
    envs = make("breakout", 2, episodic_life=False)
    _, info = envs.reset(seed=0)
    seen, ends = set(info["lives"].tolist()), 0
    # Fire again and again: no one else does after a lost life.
    for step in range(600):
        _, _, terminated, _, info = envs.step(np.full(2, 1 if step % 4 == 0 else step % 2 + 2))
        assert np.array_equal(terminated, info.get("_episode", np.zeros(2, bool)))
        seen |= set(info["lives"].tolist())
        ends += int(terminated.sum())
        if ends:
            break
    assert ends
    assert {2, 3, 4, 5} <= seen


def test_a_stack_repeats_the_first_frame_of_an_episode_and_then_moves_on(make):
    envs, [lane] = make("breakout", 1, stack=3, size=(84, 84)), lanes_of("breakout", 1, 1)
    stacked, _ = envs.reset(seed=1)
    held = [resize_by_area(lane.frame, 84, 84)] * 3
    for action in ACTIONS[:, :1]:
        assert np.array_equal(stacked[0], held)
        ended = lane.step(int(action[0]))
        stacked, _, _, _, info = envs.step(action)
        newest = resize_by_area(lane.frame, 84, 84)
        if ended:
            last = resize_by_area(GRAY[lane.screens_at_end].max(0), 84, 84)
            assert np.array_equal(info["final_obs"][0], [*held[1:], last])
        held = [newest] * 3 if ended else [*held[1:], newest]
    assert envs.single_observation_space.shape == (3, 84, 84)


def test_colour_is_in_channels(make):
    envs = make("pong", 1, colour=True)
    frames, _ = envs.reset(seed=0)
    assert frames.shape == (1, 3, 210, 160)
    # Pong's field is (144, 72, 17) wherever nothing is.
    assert frames[0, :, 100, 75].tolist() == [144, 72, 17]


def test_a_game_that_takes_too_long_is_truncated(make, monkeypatch):
    monkeypatch.setattr(emulator, "MAX_GAME_FRAMES", 200)
    envs = make("pong", 1)
    envs.reset(seed=0)
    endings = [envs.step(np.array([0]))[2:4] for _ in range(60)]
    # At most 200 raw frames: at least one cut in 60 steps of four, and nobody wins within three seconds.
    assert any(truncated[0] for _, truncated in endings)
    assert not any(terminated[0] for terminated, _ in endings)


def test_a_killed_process_is_a_failure_that_says_so(make):
    envs = make("pong", 2, num_workers=2)
    envs.reset(seed=0)
    [worker] = envs._workers
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(Failure, match="process 1 of the environments of pong was killed by SIGKILL"):
        envs.step(np.zeros(2, int))
    with pytest.raises(UserError, match="closed"):
        envs.step(np.zeros(2, int))


@pytest.mark.parametrize("call", ["step", "reset"])
def test_an_interrupt_closes_the_environments_whose_lanes_are_at_different_steps(make, monkeypatch, call):
    # A step that followed would find the answers of the interrupted one, and return before its own was played.
    envs = make("pong", 2, num_workers=2)
    envs.reset(seed=0)
    [worker] = envs._workers

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(envs._own, call, interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.reset() if call == "reset" else envs.step(np.zeros(2, int))
    assert worker.poll() is not None
    for use in (envs.reset, lambda: envs.step(np.zeros(2, int))):
        with pytest.raises(UserError, match=r"closed, by close\(\) or by an interrupt; make them again"):
            use()


def test_processes_end_with_the_environments(make):
    envs = make("pong", 2, num_workers=2)
    [worker] = envs._workers
    envs.close()
    assert worker.poll() is not None


def test_mistakes_are_one_sentence(make):
    with pytest.raises(UserError, match="unknown game 'pogn'; did you mean 'pong'"):
        make("pogn")
    with pytest.raises(UserError, match="num_envs must be at least 1"):
        make("pong", 0)
    with pytest.raises(UserError, match="unknown pong variable 'ball_z'"):
        make("pong", 1, variables=["ball_z"])
    envs = make("pong", 2)
    with pytest.raises(UserError, match=r"call reset\(\) before"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=0)
    with pytest.raises(UserError, match="needs 2 integer actions, got float64"):
        envs.step(np.zeros(2))
    with pytest.raises(UserError, match="pong has actions 0 to 5, got"):
        envs.step(np.array([0, 6]))
