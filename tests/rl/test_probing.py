import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.logger import configure

import manicap.rl
from manicap.core.errors import UserError
from manicap.play.subset import EpisodeSubset
from manicap.probing.encoders import FrameEncoder
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.rl import ManicapExtractor, ProbeCallback, feature_map


def test_an_agent_is_probed_before_and_while_it_learns(run, pong_store, tmp_path):
    store, features = EpisodeSubset(pong_store, np.arange(4), "few"), feature_map(run, width=24)
    envs = manicap.rl.make_env("pong", num_envs=2, num_workers=1)
    kwargs = ManicapExtractor.policy_kwargs(features)
    model = PPO("CnnPolicy", envs, policy_kwargs=kwargs, n_steps=4, batch_size=8, n_epochs=1, device="cpu", seed=0)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    callback = ProbeCallback(store, every_steps=8)
    model.learn(8, callback=callback)
    # The first probe is before the first step; then every 8 steps of the two environments together.
    assert list(callback.evaluations) == [0, 8]
    encoder, quiet = FrameEncoder(features), Extraction(quiet=True)
    expected = PlayBench(store).evaluate(encoder, "discriminant", floors={}, extraction=quiet)
    # The encoder is frozen: it is the same before and after.
    assert callback.evaluations[0].f1 == callback.evaluations[8].f1 == expected.f1
    assert "probe/f1" in (tmp_path / "progress.csv").read_text().splitlines()[0]
    envs.close()


def test_an_agent_without_frames_is_refused_and_told_why(run, pong_store):
    envs = manicap.rl.make_env("pong", run, num_envs=1, num_workers=1, width=8)
    model = DQN("MlpPolicy", envs, buffer_size=8, device="cpu")
    with pytest.raises(UserError, match=r"sees frames, got observations \[8\]; .* probe the encoder once"):
        model.learn(1, callback=ProbeCallback(pong_store))
    envs.close()
