import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def campaign(tmp_path):
    """`python -m campaign` in a process of its own, as it forks before any thread is started."""

    def run(*words):
        command = [sys.executable, "-m", "campaign", *words, "--failures", str(tmp_path / "kept")]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run
