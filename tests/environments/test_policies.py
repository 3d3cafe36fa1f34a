"""Agents of Stable-Baselines3, of which the tests have only the shape: a zip whose settings tell the algorithm."""

import json
import sys
import types
import zipfile

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.core.registry import allow_plugins
from manicap.environments.config import RecordConfig
from manicap.environments.recording import record_store


def write_model(path, **settings):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(settings))
    return path


@pytest.fixture
def stable_baselines(monkeypatch):
    """A module whose models always go right, and remember who loaded them."""
    loaded = []

    def algorithm(name):
        class Model:
            def predict(self, observation, deterministic=False):
                assert deterministic
                assert observation.shape == (48, 64, 3)
                return np.array(1), None

            @staticmethod
            def load(path, device):
                loaded.append((name, device))
                return Model()

        return Model

    names = ("PPO", "A2C", "DQN", "SAC", "TD3")
    module = types.SimpleNamespace(**{name: algorithm(name) for name in names})
    monkeypatch.setitem(sys.modules, "stable_baselines3", module)
    return loaded


@pytest.mark.parametrize(
    ("algorithm", "setting"),
    [
        ("PPO", "clip_range"),
        ("DQN", "exploration_fraction"),
        ("SAC", "target_entropy"),
        ("TD3", "policy_delay"),
        ("A2C", "gae_lambda"),
    ],
)
def test_an_agent_is_loaded_by_its_algorithm(record_here, stable_baselines, tmp_path, algorithm, setting):
    from tests.environments import worlds

    model = write_model(tmp_path / "model.zip", **{setting: 1, "gamma": 0.99})
    # A closure, so that this process plays, which has the module.
    store = record_here(lambda: worlds.Walk("rgb_array"), name="walk", steps=8, lanes=1, policy=f"sb3:{model}")
    assert store.actions.tolist() == [1] * 7 + [0]
    assert {*stable_baselines} == {(algorithm, "cpu")}


def test_what_is_no_agent_is_told(record_here, stable_baselines, tmp_path):
    (tmp_path / "model.zip").write_bytes(b"no zip")
    with pytest.raises(UserError, match=r"model.zip is not a model of Stable-Baselines3"):
        record_here("Walk", policy=f"sb3:{tmp_path / 'model.zip'}")


def test_without_the_package_it_is_named(record_here, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    model = write_model(tmp_path / "model.zip")
    with pytest.raises(UserError, match=r"needs Stable-Baselines3: pip install 'manicap\[rl\]'"):
        record_here("Walk", policy=f"sb3:{model}")


def test_a_config_from_elsewhere_does_not_have_a_model_unpickled(stable_baselines, tmp_path):
    allow_plugins(["tests.environments.worlds:Walk"])
    model = write_model(tmp_path / "model.zip")
    config = RecordConfig("tests.environments.worlds:Walk", steps=8, policy=f"sb3:{model}")
    with pytest.raises(UserError, match=r"the policy sb3:.*model.zip is not part of manicap, and a file cannot decide"):
        record_store(config, tmp_path)
    assert stable_baselines == []
