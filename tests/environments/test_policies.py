"""Agents of Stable-Baselines3 play as they predict."""

import sys

import gymnasium
import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.core.registry import allow_plugins
from manicap.environments.config import RecordConfig
from manicap.environments.recording import record_store
from tests.environments.conftest import shades_by_hand
from tests.environments.worlds import Shades

AGENTS = {
    "PPO": ("CartPole-v1", {"n_steps": 16, "batch_size": 16}),
    "A2C": ("CartPole-v1", {}),
    "DQN": ("CartPole-v1", {"buffer_size": 10}),
    "SAC": ("Pendulum-v1", {"buffer_size": 10}),
    "TD3": ("Pendulum-v1", {"buffer_size": 10}),
    "DDPG": ("Pendulum-v1", {"buffer_size": 10}),
}
SMALL = {"steps": 12, "lanes": 1, "frame_size": (48, 48)}


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """Untrained ones: what they do is as definite."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    place, found = tmp_path_factory.mktemp("agents"), {}
    for name, (env, settings) in AGENTS.items():
        network = {"net_arch": [8]}
        agent = getattr(stable_baselines3, name)("MlpPolicy", env, seed=0, policy_kwargs=network, **settings)
        agent.save(place / name)
        found[name] = (agent, place / f"{name}.zip")
    return found


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_plays_as_it_predicts(name, agents, record_here):
    agent, file = agents[name]
    env = AGENTS[name][0]
    if name == "PPO":  # in another process
        store = record_here(env, policy=f"sb3:{file}", **SMALL)
    else:
        store = record_here(
            lambda: gymnasium.make(env, render_mode="rgb_array"), name="own", policy=f"sb3:{file}", **SMALL
        )
    labels = store.labelling("recorded").values(store.rows, [each.name for each in store.variables])
    # The recorded state of these environments is the observation, and its first row follows a reset.
    expected = [agent.predict(row.astype(np.float32), deterministic=True)[0] for row in labels[:-1]]
    np.testing.assert_allclose(store.actions[:-1], np.stack(expected), rtol=1e-5, atol=1e-6)


def test_an_agent_leaves_the_generators_of_lanes_and_of_the_caller_alone(record_here, tmp_path):
    # To load an agent with a seed sets the global generators of Python, NumPy and torch.
    torch, stable_baselines3 = pytest.importorskip("torch"), pytest.importorskip("stable_baselines3")
    agent = stable_baselines3.PPO("MlpPolicy", Shades(), seed=0, n_steps=8, batch_size=8, device="cpu")
    agent.save(tmp_path / "agent")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    store = record_here("Shades", policy=f"sb3:{tmp_path / 'agent.zip'}", steps=12, lanes=3)
    assert torch.equal(torch.rand(3), expected)
    assert store.frames[:][:, 0, 0].reshape(3, 4).tolist() == shades_by_hand(3, 4)


def test_what_is_no_agent_is_told(record_here, tmp_path):
    pytest.importorskip("stable_baselines3")
    (tmp_path / "model.zip").write_bytes(b"no zip")
    with pytest.raises(UserError, match=r"model.zip is not a model of Stable-Baselines3"):
        record_here("Walk", policy=f"sb3:{tmp_path / 'model.zip'}")


def test_an_agent_of_another_environment_is_told(agents, record_here):
    with pytest.raises(UserError, match=r"the policy sb3:.*PPO.zip"):
        record_here("Pendulum-v1", policy=f"sb3:{agents['PPO'][1]}", **SMALL)


def test_without_the_package_it_is_named(record_here, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    (tmp_path / "model.zip").write_bytes(b"")
    with pytest.raises(UserError, match=r"needs Stable-Baselines3: pip install 'manicap\[rl\]'"):
        record_here("Walk", policy=f"sb3:{tmp_path / 'model.zip'}")


def test_a_config_from_elsewhere_does_not_have_a_model_unpickled(agents, tmp_path):
    allow_plugins(["tests.environments.worlds:Walk"])
    (tmp_path / "model.zip").write_bytes(agents["PPO"][1].read_bytes())
    config = RecordConfig("tests.environments.worlds:Walk", steps=8, policy=f"sb3:{tmp_path / 'model.zip'}")
    with pytest.raises(UserError, match=r"the policy sb3:.*model.zip is not part of manicap, and a file cannot decide"):
        record_store(config, tmp_path)
