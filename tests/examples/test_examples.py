"""Every example runs as a script with tiny budgets, from another directory, and prints its table."""

import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TINY = "--collect-steps 800 --probe-steps 240 --max-steps 1 --methods st-dim --probe discriminant"
NUMBER = r"-?\d+\.\d{3}"


@pytest.fixture
def run_example(tmp_path, monkeypatch, capsys):
    """Runs a script as Python would, but in this process, which has torch already; the scores that it prints."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one process plays: starting it takes longer than its play
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("MUJOCO_GL", os.environ.get("MUJOCO_GL", "egl"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    before = {*sys.modules}

    def call(name, *more):
        """Score of each variable, untrained and trained."""
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *TINY.split(), *more])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        found = re.findall(
            rf"^\| (\w+) \| (R2|F1) \| ({NUMBER}) \| ({NUMBER}) \|$", capsys.readouterr().out, re.MULTILINE
        )
        return {variable: (metric, float(untrained), float(trained)) for variable, metric, untrained, trained in found}

    yield call
    for path in EXAMPLES.glob("*.py"):
        if path.stem not in before:
            sys.modules.pop(path.stem, None)


@cache
def missing_renderer():
    """Why the control suite cannot be rendered here; empty if it can."""
    if importlib.util.find_spec("dm_control") is None:
        return "dm_control is not installed: pip install 'manicap[examples]'"
    tried = "from dm_control import suite; suite.load('reacher', 'easy').physics.render(8, 8)"
    surroundings = {**os.environ, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl")}
    done = subprocess.run([sys.executable, "-c", tried], env=surroundings, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"dm_control cannot render: {done.stderr.strip().splitlines()[-1]}"


def test_a_world_of_ones_own(run_example, tmp_path):
    found = run_example("own_world.py", "--probe-steps", "400")
    assert {name: metric for name, (metric, *_) in found.items()} == {
        "ball_x": "R2",
        "ball_y": "R2",
        "velocity_x": "R2",
        "velocity_y": "R2",
        "lit": "F1",
    }
    # A ball on a plain ground: even an untrained network shows where it is, which no mistake of labels would leave so.
    assert min(found["ball_x"][1:] + found["ball_y"][1:]) > 0.5
    (page,) = tmp_path.glob("runs/*/report.html")
    assert '"name":"ball"' in page.read_text()  # a marker


def test_playing_an_example_needs_no_torch():
    # Every process that plays imports the file of the world.
    tried = "import sys, own_world; print('torch' in sys.modules)"
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(EXAMPLES), str(EXAMPLES.parent)))}
    done = subprocess.run([sys.executable, "-c", tried], env=surroundings, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"False\n"


def test_classic_control(run_example):
    found = run_example("classic_control.py", "--stacks", "2", "--collect-steps", "1200")
    assert {*found} == {"cart_position", "cart_velocity", "pole_angle", "pole_velocity"}


def test_minigrid(run_example):
    found = run_example("minigrid_doorkey.py")
    assert {"agent_x", "agent_y", "direction", "key_x", "key_y"} <= {*found}
    assert found["direction"][0] == "F1"


def test_dm_control(run_example):
    if reason := missing_renderer():
        pytest.skip(reason)
    # Drawing in software takes its time.
    found = run_example("dm_control_reacher.py", "--collect-steps", "720")
    places = {"finger_x", "finger_y", "target_x", "target_y"}
    assert {*found} == places | {"shoulder_velocity", "wrist_velocity"}


def agents_example():
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install 'manicap[rl]'")
    found = importlib.util.spec_from_file_location("rl_example", EXAMPLES / "rl.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look for their module
    found.loader.exec_module(module)
    return module


def test_an_agent_from_pixels_and_its_table_and_a_second_call_trains_nothing(tmp_path, capsys):
    example = agents_example()
    options = example.Options(("pong",), ("scratch",), (0,), steps=64, num_envs=1, results_dir=tmp_path)
    example.main(options)
    shown = capsys.readouterr().out
    # PPO plays whole rollouts of 128 steps, in which no game of Pong ends.
    assert "| pong | scratch | 128 | no game finished |" in shown
    assert "is finished" in shown
    example.main(options)
    assert "is finished" not in capsys.readouterr().out


def test_the_return_of_an_agent_is_that_of_its_last_games():
    example = agents_example()
    # Of 1,000 steps the last 200 count: the games at 801 and 1,000.
    games = [(800, 1.0, -21.0), (801, 1.1, -20.0), (1000, 1.2, -10.0)]
    assert example.final_return({"steps": 1000, "games": games}) == -15
    assert example.final_return({"steps": 1000, "games": games[:1]}) is None
    # Student's t with one degree of freedom is 12.706; the standard error of 1 and 3 is 1.
    assert example.interval([1.0, 3.0]) == "2.0 [-10.7, 14.7]"
    assert example.interval([1.0]) == "1.0"
    assert example.interval([0.0, 0.0, 0.0]) == "0.0 [0.0, 0.0]"


EARLIER = {"num_envs": 8, "layer": "backbone", "width": 512, "max_steps": None}


@pytest.mark.parametrize(
    ("method", "stored", "changed", "told"),
    [
        ("st-dim", EARLIER, {}, None),
        ("st-dim", EARLIER | {"collect_steps": 20_000}, {}, None),
        ("st-dim", EARLIER, {"num_envs": 4}, "--num-envs 8, not 4"),
        ("st-dim", EARLIER, {"width": 256}, "--width 512, not 256"),
        ("st-dim", EARLIER, {"layer": "output"}, "--layer backbone, not output"),
        ("st-dim", EARLIER, {"max_steps": 9}, "--max-steps None, not 9"),
        ("st-dim", EARLIER, {"collect_steps": 999}, "--collect-steps 20000, not 999"),
        ("st-dim", EARLIER | {"collect_steps": 999}, {}, "--collect-steps 999, not 20000"),
        ("st-dim@output", EARLIER, {"layer": "output"}, None),
        ("st-dim@output", EARLIER, {"width": 256}, "--width 512, not 256"),
        ("scratch", EARLIER, {"width": 256, "collect_steps": 999}, None),
        ("scratch", EARLIER, {"num_envs": 4}, "--num-envs 8, not 4"),
    ],
)
def test_the_return_of_an_agent_with_other_settings_is_not_reused(tmp_path, capsys, method, stored, changed, told):
    example = agents_example()
    result = {"game": "pong", "method": method, "seed": 1, "steps": 100, "seconds": 1.0, "games": [(100, 1.0, 7.0)]}
    (tmp_path / f"pong-{method}-s1-100.json").write_text(json.dumps(result | {"options": stored}))
    options = example.Options(("pong",), (method,), (1,), steps=100, results_dir=tmp_path, **changed)
    if told is None:
        example.main(options)
        assert f"| pong | {method} | 100 | 7.0 |" in capsys.readouterr().out
    else:
        with pytest.raises(SystemExit, match=f"was trained with {told}; use another --results-dir"):
            example.main(options)


def test_the_return_of_a_game_that_ends_at_the_last_step_is_in_the_last_window(monkeypatch):
    agents_example()  # skips without its extra
    monkeypatch.syspath_prepend(EXAMPLES)
    drawn = runpy.run_path(str(EXAMPLES.parent / "docs" / "scripts" / "rl.py"))
    # Twelve windows of 100 steps: step 99 is in the first, 1,100 and 1,200 in the last.
    games = [(99, 1.0, -21.0), (1100, 11.0, -20.0), (1200, 12.0, -10.0)]
    found = drawn["curve"]({"games": games}, 0, 1200)
    assert found[[0, -1]].tolist() == [-21, -15]
    assert np.isnan(found[1:-1]).all()


@pytest.mark.slow
def test_agents_on_features(tmp_path, capsys):
    example, places = agents_example(), {f"{name}_dir": tmp_path / name for name in ("runs", "data", "results")}
    small = {"max_steps": 1, "collect_steps": 1200, "width": 16, "steps": 64, "num_envs": 1}
    options = example.Options(("pong",), ("untrained", "dim-c+", "dim-c+@output"), (0,), **small, **places)
    example.main(options)
    shown = capsys.readouterr().out
    for method in options.methods:
        assert f"| pong | {method} | 128 |" in shown
    layers = [example.encoder_of("pong", method, options)[0].layer for method in options.methods]
    assert layers == ["backbone", "backbone", "output"]
