"""Diagnostics on the way are written beside the run and change nothing of it."""

import json
import re
from dataclasses import replace

import pytest

from manicap.core.errors import Failure
from manicap.diagnostics.training import measure_batch
from manicap.train.loop import Run, pretrain
from tests.algorithms.small import small_config
from tests.train.runner import EXECUTION, result_bytes

OBSERVED = replace(EXECUTION, diagnose_every=5)


def steps_of(run_dir):
    return [json.loads(line)["step"] for line in (run_dir / "diagnostics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("method", ["dim-uac+", "st-dim"])
def test_the_run_has_the_same_bytes_with_and_without(method, data_dir, tmp_path):
    config = small_config(method)
    pretrain(config, tmp_path / "plain", EXECUTION, data_dir, observe=measure_batch)
    pretrain(config, tmp_path / "observed", OBSERVED, data_dir, observe=measure_batch)
    assert result_bytes(tmp_path / "observed") == result_bytes(tmp_path / "plain")
    assert steps_of(tmp_path / "observed") == [5, 10]
    assert not (tmp_path / "plain" / "diagnostics.jsonl").exists()


def test_a_resumed_run_observes_every_step_once(data_dir, tmp_path, monkeypatch):
    config = small_config("st-dim")
    step = Run.step

    def failing_step(self, rows):
        if self.progress.step == 7:
            raise Failure("the power went out")
        return step(self, rows)

    every_step = replace(OBSERVED, diagnose_every=1, checkpoint_seconds=1e9)
    monkeypatch.setattr(Run, "step", failing_step)
    with pytest.raises(Failure, match="power"):
        pretrain(config, tmp_path / "run", every_step, data_dir, observe=measure_batch)
    monkeypatch.setattr(Run, "step", step)
    assert steps_of(tmp_path / "run") == list(range(1, 8))
    # There was no checkpoint: it starts again, and so do the observations.
    pretrain(config, tmp_path / "run", every_step, data_dir, observe=measure_batch)
    assert steps_of(tmp_path / "run") == list(range(1, 13))


def test_the_cost_is_told(data_dir, tmp_path, capsys):
    telling = replace(OBSERVED, quiet=False)
    pretrain(small_config("st-dim"), tmp_path / "run", telling, data_dir, observe=measure_batch)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "diagnostics" in line]
    assert re.search(r"diagnostics every 5 steps took \d+\.\d s, \d+\.\d % of the training time", line)
