import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

import manicap.rl
from manicap.core.errors import UserError
from manicap.rl.vec_env import VectorAdapter


@pytest.fixture
def make():
    made = []

    def make(*arguments, **options):
        made.append(manicap.rl.make_env(*arguments, num_workers=1, **options))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def test_an_agent_learns_on_features_in_one_call(make, run, pong_store):
    envs = make("pong", run, num_envs=2, width=16, standardise=pong_store, stack=2)
    model = PPO("MlpPolicy", envs, n_steps=4, batch_size=8, n_epochs=1, device="cpu", seed=0)
    assert model.observation_space.shape == (32,)
    model.learn(8)
    assert model.rollout_buffer.observations.size == 4 * 2 * 32  # features, not frames


def test_a_life_is_an_episode_and_returns_are_of_whole_games_unclipped(make):
    envs, plain = make("breakout", num_envs=1), manicap.make_vec("breakout", 1, num_workers=1)
    envs.seed(4)
    observations, (expected, _) = envs.reset(), plain.reset(seed=4)
    assert np.array_equal(observations, expected)
    total, ends, rng = 0.0, 0, np.random.default_rng(0)
    for _ in range(1000):
        action = rng.integers(0, 4, 1)
        expected, reward, terminated, _, told = plain.step(action)
        observations, [clipped], [done], [info] = envs.step(action)
        total, ends = total + reward[0], ends + int(done)
        assert np.array_equal(observations, expected)
        assert clipped == np.sign(reward[0])
        assert done == terminated[0]
        assert info["labels"]["ball_x"] == told["labels"]["ball_x"][0]
        if done:
            assert np.array_equal(info["terminal_observation"], told["final_obs"][0])
            assert info["TimeLimit.truncated"] is False
        if "episode" in info:
            break
    assert info["episode"]["r"] == total
    assert ends == 5  # Breakout has five lives


def test_evaluate_policy_counts_whole_games(make):
    envs = make("breakout", num_envs=2, size=(84, 84))

    class Fire:
        def predict(self, observations, **_):
            return np.ones(len(observations), int), None

    returns, lengths = evaluate_policy(Fire(), envs, n_eval_episodes=2, return_episode_rewards=True)
    # Always firing never moves the paddle; a ball or two still meets it. A game is five lives of some 25 steps.
    assert min(lengths) > 60
    assert all(value == int(value) >= 0 for value in returns)


def test_mistakes_are_one_sentence(make, run):
    with pytest.raises(UserError, match="layer, width and standardise need an encoder"):
        make("pong", width=8)
    with pytest.raises(UserError, match="colour and size are the encoder's own"):
        make("pong", run, size=(84, 84))
    with pytest.raises(UserError, match="a FeatureMap already has its layer"):
        make("pong", manicap.rl.feature_map(run), width=8)
    with pytest.raises(UserError, match="unknown game 'pogn'"):
        make("pogn")
    with pytest.raises(UserError, match="autoreset_mode SAME_STEP"):
        VectorAdapter(SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")]))


def test_a_missing_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("manicap.rl.", "stable_baselines3"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(
        UserError, match=r"manicap.rl.ManicapExtractor needs Stable-Baselines3: pip install 'manicap\[rl\]'"
    ):
        _ = manicap.rl.ManicapExtractor
    assert manicap.rl.EncodeObservation is not None
