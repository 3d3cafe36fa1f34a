"""Every example runs as its first lines say, with tiny budgets, from another directory."""

import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TINY = "--collect-steps 1200 --probe-steps 400 --max-steps 1 --methods st-dim --probe discriminant"
NUMBER = r"-?\d+\.\d{3}"


def run_example(name, folder, *more):
    """Score of each variable, untrained and trained, as printed."""
    command = [sys.executable, EXAMPLES / name, *TINY.split(), *more]
    path = os.pathsep.join(filter(None, (str(EXAMPLES.parent), os.environ.get("PYTHONPATH"))))
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "SDL_VIDEODRIVER": "dummy"}
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.findall(rf"^\| (\w+) \| (R2|F1) \| ({NUMBER}) \| ({NUMBER}) \|$", done.stdout, re.M)
    return {variable: (metric, float(untrained), float(trained)) for variable, metric, untrained, trained in found}


@cache
def missing_renderer():
    """Why the control suite cannot be rendered here; empty if it can."""
    if importlib.util.find_spec("dm_control") is None:
        return "dm_control is not installed"
    tried = "from dm_control import suite; suite.load('reacher', 'easy').physics.render(8, 8)"
    surroundings = {**os.environ, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl")}
    done = subprocess.run([sys.executable, "-c", tried], env=surroundings, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"dm_control cannot render: {done.stderr.strip().splitlines()[-1]}"


def test_a_world_of_ones_own(tmp_path):
    found = run_example("own_world.py", tmp_path)
    assert {name: metric for name, (metric, *_) in found.items()} == {
        "ball_x": "R2",
        "ball_y": "R2",
        "velocity_x": "R2",
        "velocity_y": "R2",
        "lit": "F1",
    }
    # A ball on a plain ground: even an untrained network shows where it is, which no mistake of labels would leave so.
    assert min(found["ball_x"][1:] + found["ball_y"][1:]) > 0.5


def test_classic_control(tmp_path):
    found = run_example("classic_control.py", tmp_path, "--stacks", "2")
    assert {*found} == {"cart_position", "cart_velocity", "pole_angle", "pole_velocity"}


def test_minigrid(tmp_path):
    found = run_example("minigrid_doorkey.py", tmp_path)
    assert {"agent_x", "agent_y", "direction", "key_x", "key_y"} <= {*found}
    assert found["direction"][0] == "F1"


def test_dm_control(tmp_path):
    if reason := missing_renderer():
        pytest.skip(reason)
    found = run_example("dm_control_reacher.py", tmp_path)
    places = {"finger_x", "finger_y", "target_x", "target_y"}
    assert {*found} == places | {"shoulder_velocity", "wrist_velocity"}
