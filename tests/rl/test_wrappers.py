from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import manicap
from manicap.core.errors import UserError
from manicap.rl import EncodeObservation, EncodeVectorObservation
from manicap.rl.wrappers import FeatureStack

LENGTHS = (3, 2)


class Counter(gymnasium.Env):
    """A picture of 2 x 2 that is the number of the step, from 10 on; episodes of three steps, or as many as told."""

    observation_space = gymnasium.spaces.Box(0, 255, (1, 2, 2), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape=(1, 2, 2), length=3):
        self.length = length
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)

    def reset(self, *, seed=None, options=None):
        self.time = 10
        return self.picture(), {}

    def step(self, action):
        self.time += 1
        return self.picture(), 0.0, self.time == 10 + self.length, False, {}

    def picture(self):
        return np.full(self.observation_space.shape, self.time, np.uint8)


class Mean(torch.nn.Module):
    """One feature; counts its calls."""

    calls = 0

    def forward(self, frames):
        type(self).calls += 1
        return frames.float().mean((1, 2, 3))[:, None]


OPTIONS = {"input_shape": (1, 2, 2), "stack": 3}


def two_counters(mode):
    """Episodes of three and of two steps: they end together only in every sixth step."""
    envs = SyncVectorEnv([partial(Counter, length=length) for length in LENGTHS], autoreset_mode=mode)
    envs = EncodeVectorObservation(envs, Mean(), **OPTIONS)
    assert envs.reset()[0].tolist() == [[10, 10, 10]] * 2
    return envs


def test_one_environment_gives_the_features_of_the_last_frames_oldest_first():
    env = EncodeObservation(Counter(), Mean(), **OPTIONS)
    assert env.observation_space.shape == (3,)
    assert env.reset()[0].tolist() == [10, 10, 10]
    assert env.step(0)[0].tolist() == [10, 10, 11]
    assert env.step(0)[0].tolist() == [10, 11, 12]
    assert env.reset()[0].tolist() == [10, 10, 10]


def test_many_reset_in_the_same_step_keep_the_last_features():
    envs = two_counters(AutoresetMode.SAME_STEP)
    # What each of six steps shows, and the last frames of the episodes that end in it, environment by environment.
    first, second, third = [10, 10, 10], [10, 10, 11], [10, 11, 12]
    expected = [
        ([second, second], [None, None]),
        ([third, first], [None, [10, 11, 12]]),
        ([first, second], [[11, 12, 13], None]),
        ([second, first], [None, [10, 11, 12]]),
        ([third, second], [None, None]),
        ([first, first], [[11, 12, 13], [10, 11, 12]]),
    ]
    held = []
    for shown, final in expected:
        found, _, terminated, _, info = envs.step(np.zeros(2, int))
        assert found.tolist() == shown
        assert terminated.tolist() == [each is not None for each in final]
        held.append((info.get("final_obs", [None, None]), final))
    for found, final in held:  # later steps did not write into them
        assert [None if each is None else each.tolist() for each in found] == final


def test_many_reset_in_the_next_step_begin_a_new_stack():
    envs = two_counters(AutoresetMode.NEXT_STEP)
    first, second, third, last = [10, 10, 10], [10, 10, 11], [10, 11, 12], [11, 12, 13]
    # Every episode is one step longer, the one that resets.
    expected = [[second, second], [third, third], [last, first], [first, second], [second, third], [third, first]]
    for shown in expected:
        assert envs.step(np.zeros(2, int))[0].tolist() == shown
    # A reset in between, after the second has ended and before it would begin by itself.
    envs.step(np.zeros(2, int))
    envs.step(np.zeros(2, int))
    assert envs.reset()[0].tolist() == [first, first]
    assert envs.step(np.zeros(2, int))[0].tolist() == [second, second]


def test_the_encoder_is_called_once_per_step_for_all_environments():
    envs = two_counters(AutoresetMode.SAME_STEP)
    before = Mean.calls
    for _ in range(6):
        envs.step(np.zeros(2, int))
    assert Mean.calls - before == 6


def test_all_stacks_are_copied_at_most_twice_per_step(monkeypatch):
    # What ended and what begins; of a step in which nothing ends, once.
    envs, copies, shown = two_counters(AutoresetMode.SAME_STEP), [], FeatureStack.shown.fget
    monkeypatch.setattr(FeatureStack, "shown", property(lambda stack: copies.append(0) or shown(stack)))
    for number in (1, 2, 2, 2, 1, 2):
        copies.clear()
        envs.step(np.zeros(2, int))
        assert len(copies) == number


def test_features_of_a_game_are_those_of_its_frames(run, encoder):
    frames, _ = manicap.make_vec("pong", 2, num_workers=1).reset(seed=0)
    found, info = EncodeVectorObservation(manicap.make_vec("pong", 2, num_workers=1), run).reset(seed=0)
    assert np.array_equal(found, encoder(torch.from_numpy(frames)).numpy())
    assert info["labels"]["ball_x"].shape == (2,)


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 1)])
def test_frames_in_another_order_of_axes_are_understood(shape):
    env = EncodeObservation(Counter(shape), Mean(), input_shape=(1, 2, 2))
    assert env.reset()[0].tolist() == [10]


def test_an_environment_that_does_not_fit_is_told_what_the_encoder_expects(run):
    told = r"expects frames uint8 \[1, 210, 160\], but the environment gives float32 \[4\].*make_env\(game, encoder\)"
    with pytest.raises(UserError, match=told):
        EncodeObservation(gymnasium.make("CartPole-v1"), run)
    with pytest.raises(UserError, match=r"gives uint8 \[4, 84, 84\]"):
        EncodeVectorObservation(manicap.make_vec("pong", 1, stack=4, size=(84, 84), num_workers=1), run)
    envs = SyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(UserError, match="reset by themselves"):
        EncodeVectorObservation(envs, Mean(), **OPTIONS)
