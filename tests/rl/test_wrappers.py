import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import manicap
from manicap.core.errors import UserError
from manicap.rl import EncodeObservation, EncodeVectorObservation

LENGTH = 3


class Counter(gymnasium.Env):
    """A picture of 2 x 2 that is the number of the step, from 10 on; episodes of three steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (1, 2, 2), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape=(1, 2, 2)):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)

    def reset(self, *, seed=None, options=None):
        self.time = 10
        return self.picture(), {}

    def step(self, action):
        self.time += 1
        return self.picture(), 0.0, self.time == 10 + LENGTH, False, {}

    def picture(self):
        return np.full(self.observation_space.shape, self.time, np.uint8)


class Mean(torch.nn.Module):
    """One feature; counts its calls."""

    calls = 0

    def forward(self, frames):
        type(self).calls += 1
        return frames.float().mean((1, 2, 3))[:, None]


OPTIONS = {"input_shape": (1, 2, 2), "stack": 3}


def test_one_environment_gives_the_features_of_the_last_frames_oldest_first():
    env = EncodeObservation(Counter(), Mean(), **OPTIONS)
    assert env.observation_space.shape == (3,)
    assert env.reset()[0].tolist() == [10, 10, 10]
    assert env.step(0)[0].tolist() == [10, 10, 11]
    assert env.step(0)[0].tolist() == [10, 11, 12]
    assert env.reset()[0].tolist() == [10, 10, 10]


def test_many_reset_in_the_same_step_keep_the_last_features():
    envs = SyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    envs = EncodeVectorObservation(envs, Mean(), **OPTIONS)
    envs.reset()
    for _ in range(LENGTH):
        found, _, terminated, _, info = envs.step(np.zeros(2, int))
    assert terminated.all()
    assert found.tolist() == [[10, 10, 10]] * 2
    assert [each.tolist() for each in info["final_obs"]] == [[11, 12, 13]] * 2
    assert envs.step(np.zeros(2, int))[0].tolist() == [[10, 10, 11]] * 2


def test_many_reset_in_the_next_step_begin_a_new_stack():
    envs = EncodeVectorObservation(SyncVectorEnv([Counter] * 2), Mean(), **OPTIONS)
    envs.reset()
    for _ in range(LENGTH):
        found, *_ = envs.step(np.zeros(2, int))
    assert found.tolist() == [[11, 12, 13]] * 2
    assert envs.step(np.zeros(2, int))[0].tolist() == [[10, 10, 10]] * 2
    assert envs.step(np.zeros(2, int))[0].tolist() == [[10, 10, 11]] * 2


def test_the_encoder_is_called_once_per_step_for_all_environments(encoder):
    envs = SyncVectorEnv([Counter] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    envs = EncodeVectorObservation(envs, Mean(), **OPTIONS)
    envs.reset()
    before = Mean.calls
    for _ in range(2 * LENGTH):
        envs.step(np.zeros(4, int))
    assert Mean.calls - before == 2 * LENGTH


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
