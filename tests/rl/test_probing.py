import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.logger import configure

import manicap.rl
from manicap.core.errors import UserError
from manicap.probing.encoders import FrameEncoder
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.rl import ManicapExtractor, ProbeCallback


@pytest.fixture(scope="module")
def bench(pong_store):
    return PlayBench(pong_store)


def test_an_agent_is_probed_before_and_while_it_learns(run, encoder, pong_store, bench, tmp_path):
    envs = manicap.rl.make_env("pong", num_envs=2, num_workers=1)
    kwargs = ManicapExtractor.policy_kwargs(run)
    model = PPO("CnnPolicy", envs, policy_kwargs=kwargs, n_steps=4, batch_size=8, n_epochs=1, device="cpu", seed=0)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    callback = ProbeCallback(pong_store, every_steps=8)
    model.learn(8, callback=callback)
    # The first probe is before the first step; then every 8 steps of the two environments together.
    assert list(callback.evaluations) == [0, 8]
    expected = bench.evaluate(FrameEncoder(encoder), "discriminant", floors={}, extraction=Extraction(quiet=True))
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
