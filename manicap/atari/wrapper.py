"""AtariARI as a gymnasium wrapper: the state variables of the game in `info["labels"]`.

env = manicap.AtariARI(gymnasium.make("ALE/Pong-v5"))
observation, info = env.reset(seed=0)
info["labels"]["ball_x"]
"""

from collections.abc import Sequence
from typing import Any

import gymnasium

from manicap.atari.annotations import annotations, labels
from manicap.atari.games import Game, find_game
from manicap.core.errors import UserError


class AtariARI(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Adds `labels` (name -> int, 0 to 255) to `info` on reset and step, for any ale-py environment, wrapped or not.

    Labels are the RAM after the environment's last raw frame, decoded by `annotation_set`; `variables` selects some.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        annotation_set: str = "corrected",
        variables: Sequence[str] | None = None,
    ) -> None:
        variables = (variables,) if isinstance(variables, str) else variables
        gymnasium.utils.RecordConstructorArgs.__init__(self, annotation_set=annotation_set, variables=variables)
        super().__init__(env)
        self.game = _game_of(env)
        self.annotation_set = annotation_set
        names = [variable.name for variable in annotations(self.game, annotation_set)]
        self.variables = tuple(names if variables is None else variables)
        self.labels()  # report an unknown variable now, not at the first step

    def labels(self) -> dict[str, int]:
        """The current value of every variable."""
        ram = self.env.unwrapped.ale.getRAM()  # type: ignore[attr-defined]
        found = labels(ram, self.game, self.annotation_set, self.variables)
        return {name: int(value) for name, value in found.items()}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | {"labels": self.labels()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info | {"labels": self.labels()}


def _game_of(env: gymnasium.Env[Any, Any]) -> Game:
    base = env.unwrapped
    if not hasattr(base, "ale"):
        name = env.spec.id if env.spec else type(base).__name__
        raise UserError(f"AtariARI needs an ale-py environment such as gymnasium.make('ALE/Pong-v5'), got {name}")
    if base.spec is not None and "game" in base.spec.kwargs:
        return find_game(str(base.spec.kwargs["game"]))
    return find_game(str(base._game))  # type: ignore[attr-defined]
