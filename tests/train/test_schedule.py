"""The learning rate of each step, and that the optimizer gets it."""

import pytest
import torch

from manicap.train.loop import Run, pretrain
from manicap.train.schedule import rate_factor
from manicap.train.setup import Execution
from tests.algorithms.small import small_config


def test_a_constant_rate_is_constant():
    assert [rate_factor("constant", 0, step, 10) for step in (0, 5, 9)] == [1, 1, 1]


def test_a_cosine_is_that_of_torch():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for step in range(20):
        assert rate_factor("cosine", 0, step, 20) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-9)
        optimizer.step()
        scheduler.step()


def test_a_warm_up_rises_in_equal_steps_and_then_leaves_the_schedule_alone():
    assert [rate_factor("constant", 4, step, 10) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert rate_factor("cosine", 4, 1, 10) == pytest.approx(0.5 * rate_factor("cosine", 0, 1, 10))
    assert rate_factor("cosine", 4, 7, 10) == rate_factor("cosine", 0, 7, 10)


def test_the_optimizer_of_a_run_steps_with_these_rates(data_dir, tmp_path, monkeypatch):
    config = small_config("st-dim", max_steps=4, schedule="cosine", warmup_steps=2)
    used, step = [], Run.step

    def step_and_note(self, rows):
        loss = step(self, rows)
        used.append({group["lr"] for group in self.setup.optimizer.param_groups})
        return loss

    monkeypatch.setattr(Run, "step", step_and_note)
    pretrain(config, tmp_path / "run", Execution(threads=1, quiet=True), data_dir)
    # Half of 3e-4; then (1 + cos(pi k / 4)) / 2 of it for k = 1, 2, 3.
    expected = [1.5e-4, 3e-4 * 0.8535534, 1.5e-4, 3e-4 * 0.1464466]
    assert [rates.pop() for rates in used] == pytest.approx(expected, rel=1e-6)
