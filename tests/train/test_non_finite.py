"""Losses that are only counted, as on a GPU, where looking at every one would make the device wait."""

import math

import pytest
import torch

from manicap.algorithms.base import LossOutput
from manicap.algorithms.st_dim import STDIM
from manicap.core.errors import Failure
from manicap.train.checkpoint import CheckpointStore
from manicap.train.loop import Run
from manicap.train.non_finite import NonFiniteCount
from manicap.train.setup import Execution
from tests.algorithms.small import small_config
from tests.train.runner import run_to_end


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """The loop as it is where the device is not waited for after a step."""
    init = Run.__init__

    def patched(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.looks_at_every_step = False

    monkeypatch.setattr(Run, "__init__", patched)


@pytest.fixture
def fails_at_step_3(monkeypatch, as_on_a_gpu):
    """A weight is not a number from step 3 on, and with it every loss."""
    step = Run.step

    def poisoned(self, rows):
        if self.progress.step == 3:
            next(self.setup.method.parameters()).data.view(-1)[0] = math.nan
        return step(self, rows)

    monkeypatch.setattr(Run, "step", poisoned)


def execution(**changes):
    return Execution(threads=1, quiet=True, **changes)


def newest_checkpoint(run_dir):
    return CheckpointStore(run_dir / "checkpoints").newest_step()


@pytest.mark.parametrize("clip", [None, 1.0])
def test_no_checkpoint_is_written_after_a_loss_that_is_not_finite(clip, data_dir, tmp_path, fails_at_step_3):
    # A checkpoint after every step, no log between the first step and the twentieth.
    config = small_config("st-dim", clip_gradient_norm=clip)
    sentence = r"not finite at step 3, and \d more times up to step 4; the checkpoint of step 3 is kept"
    with pytest.raises(Failure, match=sentence):
        run_to_end(config, tmp_path / "run", data_dir, execution(checkpoint_seconds=0, log_every=20))
    assert newest_checkpoint(tmp_path / "run") == 3


def test_the_next_logged_step_stops_the_run(data_dir, tmp_path, fails_at_step_3):
    # Steps 3, 4 and 5 are not finite; the sixth (counted from 1) is logged. No checkpoint in between.
    sentence = "not finite at step 3, and 2 more times up to step 6; no checkpoint was written"
    with pytest.raises(Failure, match=sentence):
        run_to_end(small_config("st-dim"), tmp_path / "run", data_dir, execution(checkpoint_seconds=1e9, log_every=6))
    assert newest_checkpoint(tmp_path / "run") is None


def test_a_loss_that_leaves_sound_weights_behind_is_not_forgotten(data_dir, tmp_path, monkeypatch, as_on_a_gpu):
    # An infinite loss without a gradient: the weights stay finite and the next loss is a number again.
    forward = STDIM.loss

    def infinite_at_step_4(self, batch):
        loss = forward(self, batch)
        self.calls = getattr(self, "calls", 0) + self.training
        return LossOutput({**loss.parts, "more": torch.tensor(math.inf)}) if self.calls == 5 else loss

    monkeypatch.setattr(STDIM, "loss", infinite_at_step_4)
    with pytest.raises(Failure, match="not finite at step 4, and 0 more times"):
        run_to_end(small_config("st-dim"), tmp_path / "run", data_dir, execution(checkpoint_seconds=1e9, log_every=50))


def test_non_finite_values_are_counted_from_the_first():
    count = NonFiniteCount(torch.device("cpu"))
    assert count.read() == (0, -1)
    for step, value in enumerate([1.0, math.nan, 2.0, -math.inf]):
        count.add(torch.tensor(value), step)
    assert count.read() == (2, 1)
