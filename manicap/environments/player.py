"""One lane: an environment, its policy, and what is seen and known before each action."""

import contextlib
import random
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.ranges import shown
from manicap.environments.config import RecordConfig
from manicap.environments.labels import LabelReader
from manicap.environments.making import OwnFunctions, lane_seed, make_environment, users_code
from manicap.environments.pictures import FrameTaker
from manicap.environments.policies import make_policy

TERMINATED, TRUNCATED, CUT = 1, 2, 3
"""Why an episode ended: by the environment, by a limit of steps, or because the lane ends here."""


@dataclass(frozen=True)
class Played:
    action: Any
    reward: float
    ended: int
    """0 if the episode continues."""


class Player:
    """`with Player(config, lane, own) as player:` makes, resets and closes the environment.

    The observation after the last action of an episode is not seen: the next one is the first of the next episode.
    """

    def __init__(self, config: RecordConfig, lane: int, own: OwnFunctions) -> None:
        self._config, self._lane, self._own = config, lane, own
        self._frames = FrameTaker(config)
        self._step = self._episode_steps = 0
        self._observation: Any = None
        self._info: dict[str, Any] = {}

    def __enter__(self) -> Self:
        config, lane = self._config, self._lane
        with contextlib.ExitStack() as stack:
            stack.callback(random.setstate, random.getstate())
            stack.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
            self._seed_globals("making")
            self.env = make_environment(config, self._own)
            stack.push(self._close)
            self._labels = LabelReader(config, self._own)
            self.env.action_space.seed(lane_seed(config, lane, "actions"))
            self._policy = make_policy(config, self.env, lane, self._own)
            self._seed_globals("global")  # again: what was imported, made and loaded may have seeded them too
            self._reset(lane_seed(config, lane, "environment"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def _close(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        with (
            users_code(f"close() of {self._config.env}", self.place) if kind is None else contextlib.suppress(Exception)
        ):
            self.env.close()

    def _seed_globals(self, stream: str) -> None:
        """For environments that draw from the global generators."""
        seed = lane_seed(self._config, self._lane, stream)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002

    @property
    def place(self) -> str:
        return f"in lane {self._lane} at step {self._step}"

    def frame(self) -> NDArray[np.uint8]:
        return self._frames.take(self.env, self._observation, self.place)

    def labels(self) -> dict[str, Any] | None:
        return self._labels.read(self.env, self._observation, self._info, self.place)

    def play(self) -> Played:
        """Choose and play an action; when an episode ends, the next one begins."""
        place = self.place
        with users_code(f"the policy {self._config.policy}", place):
            action = self._policy(self._observation)
        with users_code(f"step() of {self._config.env}", place):
            self._observation, reward, terminated, truncated, info = self.env.step(action)
        self._info = self._checked_info(info, "step()", place)
        self._step += 1
        self._episode_steps += 1
        at_limit = self._episode_steps == self._config.episode_limit
        ended = TERMINATED if terminated else TRUNCATED if truncated or at_limit else 0
        if ended:
            self._reset(None)
        return Played(action, self._checked(reward, place), ended)

    def _reset(self, seed: int | None) -> None:
        with users_code(f"reset() of {self._config.env}", self.place):
            self._observation, info = self.env.reset(seed=seed)
        self._info = self._checked_info(info, "reset()", self.place)
        self._episode_steps = 0

    def _checked_info(self, info: Any, function: str, place: str) -> dict[str, Any]:
        """The info, which must be a dict: environments with older interfaces return other things instead."""
        if not isinstance(info, dict):
            raise UserError(
                f"{function} of {self._config.env} returned {shown(info)} as its info {place}; it must be a dict, as"
                " gymnasium 1 requires"
            )
        return info

    def _checked(self, reward: Any, place: str) -> float:
        try:
            found = float(reward)
        except (TypeError, ValueError):
            found = np.nan
        if not np.isfinite(found):
            raise UserError(f"{self._config.env} gave the reward {shown(reward)} {place}; it must be a finite number")
        return found
