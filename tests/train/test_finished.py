"""A finished run, opened: what it says of itself, its encoder, and its network as it was initialised."""

from pathlib import Path

import pytest
import torch

import manicap
from manicap.algorithms.base import MethodContext
from manicap.core.errors import UserError
from manicap.train import finished
from manicap.train.finished import FinishedRun, require_runs
from manicap.train.setup import build_method
from tests.algorithms.small import small_config
from tests.train.runner import run_to_end

CONFIG = small_config("dim-ua", max_steps=2, seed=3)


@pytest.fixture(scope="module")
def run_dir(data_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    run_to_end(CONFIG, run_dir, data_dir)
    return run_dir


@pytest.fixture(scope="module")
def frames():
    return torch.randint(0, 256, (3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_a_run_tells_its_config_and_how_far_it_was_trained(run_dir):
    run = manicap.open_run(run_dir)
    assert run.config == CONFIG
    assert (run.training.steps, run.training.weights, run.training.precision) == (2, "best", "float32")


def test_the_untrained_network_has_the_weights_that_the_run_began_with(run_dir, frames):
    method = build_method(CONFIG, MethodContext()).eval()
    for probe_input in ("output", "backbone"):
        untrained = FinishedRun(run_dir).untrained(probe_input)
        assert torch.equal(untrained(frames), method.represent(frames, probe_input))
        trained = FinishedRun(run_dir).encoder(probe_input)
        assert not torch.equal(untrained(frames), trained(frames))
        assert torch.equal(trained(frames), manicap.load(run_dir, probe_input)(frames))
        assert untrained.fingerprint != trained.fingerprint


def test_its_files_are_read_once(run_dir, monkeypatch):
    read = []
    for name in ("read_run_config", "read_description"):
        own = getattr(finished, name)
        monkeypatch.setattr(finished, name, lambda path, own=own, name=name: read.append(name) or own(path))
    run = FinishedRun(run_dir)
    for _ in range(2):
        _ = run.config, run.training
        run.encoder()
        run.untrained()
    assert sorted(read) == ["read_description", "read_run_config"]


def test_what_is_no_finished_run_is_told(run_dir, tmp_path):
    require_runs((run_dir,))
    with pytest.raises(UserError, match=f"no finished run at {tmp_path}, nowhere"):
        require_runs((run_dir, tmp_path, Path("nowhere")))
    with pytest.raises(UserError, match=r"config\.toml"):
        manicap.open_run(tmp_path)
    (tmp_path / "config.toml").write_text((run_dir / "config.toml").read_text())
    with pytest.raises(UserError, match=r"has no encoder\.json: finish the run with 'manicap resume"):
        manicap.open_run(tmp_path)
