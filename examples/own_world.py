"""A world of your own: a class with reset, step and render, whose state is in info["labels"].

    python examples/own_world.py

A lamp is switched by what the ball does: it is lit while the ball is in the right half.
"""

from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import tyro
from table import print_table

import manicap

SIDE, RADIUS, STEPS = 64, 4, 100


class Billiard(gymnasium.Env[Any, Any]):
    """A ball that is pushed and bounces; a lamp that is lit while it is on the right."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    action_space = gymnasium.spaces.Discrete(5)
    observation_space = gymnasium.spaces.Box(-SIDE, SIDE, (4,), np.float64)
    pushes = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(RADIUS, SIDE - RADIUS, 2)
        self.velocity = self.np_random.uniform(-3, 3, 2)
        self.time = 0
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.velocity = np.clip(self.velocity + self.pushes[action], -4, 4)
        self.place = self.place + self.velocity
        outside = (self.place < RADIUS) | (self.place > SIDE - RADIUS)
        self.velocity[outside] *= -1
        self.place = np.clip(self.place, RADIUS, SIDE - RADIUS)
        self.time += 1
        observation, info = self._seen()
        return observation, float(outside.any()), False, self.time == STEPS, info

    def render(self) -> Any:
        image = np.full((SIDE, SIDE, 3), 40, np.uint8)
        image[:4, :4] = (250, 250, 90) if self.place[0] > SIDE / 2 else (90, 90, 90)
        down, across = np.ogrid[:SIDE, :SIDE]
        image[(across - self.place[0]) ** 2 + (down - self.place[1]) ** 2 < RADIUS**2] = (230, 80, 60)
        return image

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        (x, y), (vx, vy) = self.place.tolist(), self.velocity.tolist()
        labels = {"ball_x": x, "ball_y": y, "velocity_x": vx, "velocity_y": vy, "lit": x > SIDE / 2}
        return np.r_[self.place, self.velocity], {"labels": labels}


def main(
    stack: int = 2,
    collect_steps: int = 10_000,
    probe_steps: int = 8_000,
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
            env="own_world:Billiard",  # the file own_world.py, which is beside this script
            stack=stack,
            label_kinds=("ball_x:place", "ball_y:place"),
            label_categories=("ball_x:position", "ball_y:position", "velocity_x:velocity", "velocity_y:velocity"),
            collect_steps=collect_steps,
            max_steps=max_steps,
            evaluation={
                "probe_input": "backbone",
                "probe_steps": probe_steps,
                "probe": probe,
                "coordinates": ("ball_x:x:-0.5:63.5", "ball_y:y:-0.5:63.5"),  # in pixels, whose centres are whole
            },
            data_dir=data_dir,
            runs_dir=runs_dir,
        )
    print_table(f"Billiard, 64 x 64, {stack} frames", results)


if __name__ == "__main__":
    tyro.cli(main)
