"""An environment for `record.py` whose frames cost next to nothing: the memory of a worker is its own."""

from typing import Any, ClassVar

import gymnasium
import numpy as np


class Square(gymnasium.Env[Any, Any]):
    """A square that moves on 96 x 96 pixels."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(1)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.time = render_mode, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return 0, 0.0, self.time % 200 == 0, False, self._info()

    def render(self) -> Any:
        image = np.zeros((96, 96, 3), np.uint8)
        place = self.time % 90
        image[place : place + 6, place : place + 6] = self.time % 256
        return image

    def _info(self) -> dict[str, Any]:
        return {"labels": {"place": self.time % 90}}
