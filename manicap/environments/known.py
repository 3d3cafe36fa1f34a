"""State variables of well-known environments, for recordings without labels of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

DIRECTIONS = ("right", "down", "left", "up")
OBSERVED: Mapping[str, Sequence[str]] = {
    "CartPoleEnv": ("cart_position", "cart_velocity", "pole_angle", "pole_velocity"),
    "PendulumEnv": ("angle_cos", "angle_sin", "angular_velocity"),
    "MountainCarEnv": ("position", "velocity"),
    "Continuous_MountainCarEnv": ("position", "velocity"),
    "AcrobotEnv": ("angle_1_cos", "angle_1_sin", "angle_2_cos", "angle_2_sin", "velocity_1", "velocity_2"),
}
"""Meaning of the entries of an observation, by the class of the environment."""
NUM_ANGLES = {"PendulumEnv": 1, "AcrobotEnv": 2}
"""Angles at the beginning of the state, each observed as its cosine and sine."""


def known_labels(env: Any) -> dict[str, Any] | None:
    """The labels of a step, from the state: wrappers may change observations. None for an unknown environment."""
    base = env.unwrapped
    kind = type(base).__name__
    if kind in OBSERVED and type(base).__module__.startswith("gymnasium."):
        return dict(zip(OBSERVED[kind], _observed(base.state, NUM_ANGLES.get(kind, 0)), strict=True))
    if hasattr(base, "agent_pos") and hasattr(base, "agent_dir") and hasattr(base, "grid"):
        return minigrid_labels(base)
    return None


def _observed(state: Any, num_angles: int) -> list[float]:
    """The observation of classic control, in float32 as the environment rounds it."""
    entries = [of(angle) for angle in state[:num_angles] for of in (np.cos, np.sin)]
    return np.array([*entries, *state[num_angles:]], np.float32).tolist()


def minigrid_labels(base: Any) -> dict[str, Any]:
    """The agent's place and direction, what it carries, the first door and the first key in reading order.

    A carried key is where the agent is; a key that does not exist is at 0, 0.
    """
    x, y = map(int, base.agent_pos)
    objects = [(index, each) for index, each in enumerate(base.grid.grid) if each is not None]
    doors = [each for _, each in objects if each.type == "door"]
    keys = [divmod(index, base.grid.width)[::-1] for index, each in objects if each.type == "key"]
    carried = "nothing" if base.carrying is None else str(base.carrying.type)
    key = (x, y) if carried == "key" else keys[0] if keys else (0, 0)
    door = "none" if not doors else "open" if doors[0].is_open else "locked" if doors[0].is_locked else "closed"
    return {
        "agent_x": x,
        "agent_y": y,
        "direction": DIRECTIONS[int(base.agent_dir)],
        "carrying": carried,
        "door": door,
        "key_x": int(key[0]),
        "key_y": int(key[1]),
    }
