"""A run whose encoder needs no training: 256 features, 3456 from its backbone."""

import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install 'manicap[rl]'")

import manicap


@pytest.fixture(scope="session")
def run(data_dir, pong_store, tmp_path_factory):
    runs_dir = tmp_path_factory.mktemp("rl")
    execution = manicap.Execution(quiet=True)
    return manicap.pretrain(
        "random-cnn", game="pong", collect_steps=2400, runs_dir=runs_dir, data_dir=data_dir, execution=execution
    )


@pytest.fixture(scope="session")
def encoder(run):
    return manicap.load(run)
