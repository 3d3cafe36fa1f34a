"""The reacher of dm_control from pixels: where the finger and the target are, and how fast the joints turn.

    pip install 'manicap[examples]'
    MUJOCO_GL=egl python examples/dm_control_reacher.py        # or MUJOCO_GL=osmesa: rendering in software

dm_control has an interface of its own; the class below is what gymnasium needs of it.
"""

import os
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import tyro
from table import print_table

import manicap

os.environ.setdefault("MUJOCO_GL", "egl")  # before dm_control is imported: without a display, a window cannot be opened
PLAIN = {"shadow": False, "reflection": False}


class Reacher(gymnasium.Env[Any, Any]):
    """Two joints and a target that is elsewhere in every episode. An action lasts four steps of control."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, render_mode: str | None = None, side: int = 64) -> None:
        from dm_control import suite

        self.render_mode, self.side = render_mode, side
        self.control = suite.load("reacher", "easy")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.control.task.random.seed(int(self.np_random.integers(2**31)))
        return self._seen(self.control.reset())

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = 0.0
        for _ in range(4):
            step = self.control.step(action)
            reward += step.reward or 0.0
        observation, info = self._seen(step)
        return observation, reward, False, step.last(), info

    def render(self) -> Any:
        return self.control.physics.render(self.side, self.side, camera_id=0, render_flag_overrides=PLAIN)

    def _seen(self, step: Any) -> tuple[Any, dict[str, Any]]:
        physics = self.control.physics
        places, velocity = physics.named.data.geom_xpos, physics.velocity()
        labels = {"finger_x": places["finger", "x"], "finger_y": places["finger", "y"]}
        labels |= {"target_x": places["target", "x"], "target_y": places["target", "y"]}
        labels |= {"shoulder_velocity": velocity[0], "wrist_velocity": velocity[1]}
        return np.concatenate(list(step.observation.values())), {"labels": labels}


def main(
    stack: int = 2,
    collect_steps: int = 6_000,
    probe_steps: int = 6_000,
    max_steps: int = 300,
    methods: tuple[str, ...] = ("st-dim", "dim-c+"),
    probe: str = "ridge",
    data_dir: Path = Path("data"),
    runs_dir: Path = Path("runs"),
) -> None:
    results = []
    for method in methods:
        results += manicap.run(
            method,
            env="dm_control_reacher:Reacher",  # the file dm_control_reacher.py, which is beside this script
            stack=stack,
            episode_limit=50,
            label_kinds=("finger_x:place", "finger_y:place", "target_x:place", "target_y:place"),
            collect_steps=collect_steps,
            max_steps=max_steps,
            evaluation={"probe_input": "backbone", "probe_steps": probe_steps, "probe": probe},
            data_dir=data_dir,
            runs_dir=runs_dir,
        )
    print_table(f"reacher of dm_control, 64 x 64, {stack} frames", results)


if __name__ == "__main__":
    tyro.cli(main)
