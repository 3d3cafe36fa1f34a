"""SB3 #1716: an agent with an extractor of its own must be loaded by its path alone, elsewhere, without the run."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from stable_baselines3 import DQN, PPO

import manicap.rl
from manicap.rl import ManicapExtractor

LOAD = """
import json, sys
import numpy as np
from stable_baselines3 import DQN, PPO
folder = sys.argv[1]
frames = np.load(f"{folder}/frames.npy")
features = np.load(f"{folder}/features.npy")
found = {}
for name, kind, seen in (("ppo", PPO, frames), ("dqn", DQN, frames), ("features", PPO, features)):
    found[name] = kind.load(f"{folder}/{name}.zip", device="cpu").predict(seen, deterministic=True)[0].tolist()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def saved(run, pong_store, tmp_path_factory):
    """A directory with agents, and the actions that they take."""
    folder = tmp_path_factory.mktemp("agents")
    moved = shutil.copytree(run, folder / "run")
    frames = np.asarray(pong_store.frames[::40])[:, None]
    envs = manicap.rl.make_env("pong", num_envs=1, num_workers=1)
    map_of_frames = manicap.rl.feature_map(moved, layer="backbone", width=24, standardise=pong_store)
    encoded = manicap.rl.make_env("pong", map_of_frames, num_envs=1, num_workers=1, stack=2)
    kwargs = ManicapExtractor.policy_kwargs(map_of_frames)
    same = {"device": "cpu", "seed": 0}
    agents = {
        "ppo": PPO("CnnPolicy", envs, policy_kwargs=kwargs, n_steps=8, batch_size=8, n_epochs=1, **same),
        "dqn": DQN("CnnPolicy", envs, policy_kwargs=kwargs, buffer_size=16, learning_starts=4, batch_size=4, **same),
        "features": PPO("MlpPolicy", encoded, n_steps=8, batch_size=8, n_epochs=1, **same),
    }
    features = map_of_frames.encode(frames)
    observations = {"ppo": frames, "dqn": frames, "features": np.concatenate([features] * 2, axis=1)}
    np.save(folder / "frames.npy", frames)
    np.save(folder / "features.npy", observations["features"])
    actions = {}
    for name, agent in agents.items():
        agent.learn(8)
        agent.save(folder / f"{name}.zip")
        actions[name] = agent.predict(observations[name], deterministic=True)[0].tolist()
    shutil.rmtree(moved)
    return folder, actions


def test_agents_take_the_same_actions_in_a_new_process_without_the_run(saved):
    folder, actions = saved
    command = [sys.executable, "-c", LOAD, str(folder)]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == actions
    assert len({tuple(each) for each in actions.values()}) == 3


def test_an_agent_holds_the_weights_of_its_encoder_once(saved, run):
    folder, _ = saved
    # The backbone has some 0.25 million parameters and 2 x 33,600 statistics of pixels; PPO saves the policy once, and
    # Adam's two moments of the trained ones. Everything is float32, and the pickled structure small.
    size = (folder / "ppo.zip").stat().st_size
    backbone = sum(value.numel() for value in manicap.rl.feature_map(run, layer="backbone").state_dict().values()) * 4
    assert size < 2 * backbone
