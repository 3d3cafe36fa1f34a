"""The processor's instructions are part of a run's identity."""

import json
import os
import subprocess
import sys

import pytest
import torch

from manicap.core.errors import Failure, UserError
from manicap.pretrained.encoder_files import read_description
from manicap.train.identity import processor_identity
from manicap.train.loop import Run
from tests.algorithms.small import small_config
from tests.train.runner import run_to_end

SCRIPT = (
    "import json, torch\nfrom manicap.train.identity import processor_identity\n"
    "print(json.dumps(processor_identity(torch.device('cpu'))))"
)


def identity_under(**environment):
    command = [sys.executable, "-c", SCRIPT]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment)
    return json.loads(found.stdout)


def test_limits_of_the_instruction_set_are_told():
    here = processor_identity(torch.device("cpu"))["cpu"]
    limited = identity_under(ATEN_CPU_CAPABILITY="default", DNNL_MAX_CPU_ISA="SSE41")["cpu"]
    assert limited["instructions"] == here["instructions"]
    assert limited["limits"]["ATEN_CPU_CAPABILITY"] == "default"
    assert limited["limits"]["DNNL_MAX_CPU_ISA"] == "SSE41"
    assert limited["capability"] in ("DEFAULT", "NO AVX")
    assert limited != identity_under(ATEN_CPU_CAPABILITY="default", DNNL_MAX_CPU_ISA="AVX")["cpu"]


def test_a_run_is_not_resumed_under_another_instruction_set(data_dir, tmp_path, monkeypatch):
    config = small_config("st-dim")
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    step = Run.step
    monkeypatch.setattr(Run, "step", lambda self, rows: step(self, rows) if self.progress.step < 4 else fail())
    with pytest.raises(Failure, match="power"):
        run_to_end(config, tmp_path / "run", data_dir)
    monkeypatch.setattr(Run, "step", step)
    with monkeypatch.context() as limited:
        limited.setenv("DNNL_MAX_CPU_ISA", "SSE41")
        with pytest.raises(
            UserError, match=r"different conditions: cpu\.limits\.DNNL_MAX_CPU_ISA was absent, is now SSE41"
        ):
            run_to_end(config, tmp_path / "run", data_dir)
    run_to_end(config, tmp_path / "run", data_dir)
    assert read_description(tmp_path / "run")["identity"]["cpu"] == processor_identity(torch.device("cpu"))["cpu"]


def fail():
    raise Failure("the power went out")
