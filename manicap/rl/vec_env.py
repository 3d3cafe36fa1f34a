"""A gymnasium vector environment as a Stable-Baselines3 `VecEnv`, without additional processes or copies."""

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from manicap.core.errors import UserError

Info = dict[str, Any]


class VectorAdapter(VecEnv):
    """Wraps a vector environment that resets in the same step, as SB3 expects.

    `info["episode"]` has the return and the length of whole games, as SB3's `Monitor` reports them: unclipped, and over
    all lives. `rollout/ep_rew_mean` and `evaluate_policy` therefore refer to whole games.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        if envs.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise UserError("SB3 needs a vector environment with autoreset_mode SAME_STEP, such as manicap.make_vec's")
        self.envs, self._start = envs, time.time()
        self._actions: NDArray[Any] = np.zeros(envs.num_envs, np.int64)
        self.render_mode = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        # `seed` gives environment i the seed s + i; the vector environment takes s and adds i itself.
        observations, info = self.envs.reset(seed=self._seeds[0])
        self.reset_infos = self._infos(info)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        observations, rewards, terminated, truncated, info = self.envs.step(self._actions)
        ended, infos = terminated | truncated, self._infos(info)
        for index in np.flatnonzero(ended):
            infos[index]["terminal_observation"] = info["final_obs"][index]
            infos[index]["TimeLimit.truncated"] = bool(truncated[index])
            self.reset_infos[index] = {}
        for index in np.flatnonzero(info.get("_episode", [])):
            counted = {key: info["episode"][key][index].item() for key in "rl"}
            infos[index]["episode"] = {**counted, "t": round(time.time() - self._start, 6)}
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise UserError("attributes of single environments cannot be set: they are played together")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        raise UserError("methods of single environments cannot be called: they are played together")

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        # `evaluate_policy` asks whether episodes are reported before they are clipped and cut into lives.
        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        return [None] * self.num_envs

    def _infos(self, info: Info) -> list[Info]:
        """One dict per environment."""
        columns = {name: values.tolist() for name, values in info.get("labels", {}).items()}
        lives = info["lives"].tolist() if "lives" in info else None
        return [
            {"labels": {name: values[index] for name, values in columns.items()}}
            | ({} if lives is None else {"lives": lives[index]})
            for index in range(self.num_envs)
        ]
