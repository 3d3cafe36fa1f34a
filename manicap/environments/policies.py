"""Policies that play: random actions, a function, a recorded list, or a trained agent."""

import json
import operator
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError
from manicap.core.ranges import shown
from manicap.core.reading import reason
from manicap.core.registry import import_plugin, require_allowed
from manicap.environments.config import LOCAL, RecordConfig, policy_file
from manicap.environments.making import Environment, OwnFunctions, users_code

Policy = Callable[[Any], Any]
"""From an observation to an action."""
ALGORITHMS = {
    "PPO": "clip_range",
    "TD3": "policy_delay",
    "SAC": "target_entropy",
    "DQN": "exploration_fraction",
}
"""Stable-Baselines3 algorithms by a setting that only they save; A2C, the fifth, has no such setting."""


def action_dtype(space: Any, env: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """How an action is stored: one int64, or a vector of float32."""
    if isinstance(space, spaces.Discrete):
        return np.dtype("<i8"), ()
    if isinstance(space, spaces.Box):
        return np.dtype("<f4"), (int(np.prod(space.shape, dtype=np.int64)),)
    raise UserError(f"{env} has actions of {type(space).__name__}; Discrete and Box are supported: wrap it")


def make_policy(config: RecordConfig, env: Environment, lane: int, own: OwnFunctions) -> Policy:
    """The policy of one lane, whose actions are checked against the space."""
    space, name = env.action_space, config.policy
    if own.policy is None and name == "random":
        return lambda _: space.sample()
    if own.policy is not None:
        policy = own.policy
    elif name.startswith(LOCAL):
        raise UserError(f"the policy {name} is of the process that recorded it: record it in Python again")
    elif name.startswith("actions:"):
        policy = _recorded(policy_file(name), space, lane, config.lanes)
    elif name.startswith("sb3:"):
        require_allowed(name.partition("#")[0], "policy")  # loading it executes what is pickled in it
        policy = _agent(policy_file(name))
    else:
        policy = import_plugin(name, "policy")
    return lambda observation: _checked(policy(observation), space, name)


def _checked(action: Any, space: Any, name: str) -> Any:
    try:
        if isinstance(space, spaces.Discrete):
            found: Any = operator.index(action.item() if isinstance(action, np.ndarray) else action)
        else:
            found = np.asarray(action, space.dtype)
    except (TypeError, ValueError):
        found = None
    if found is None or not space.contains(found):
        raise UserError(f"the policy {name} returned {shown(action)}, which is not an action of {space}")
    return found


def _recorded(path: Path, space: Any, lane: int, lanes: int) -> Policy:
    """Actions in turn, repeated from the first when they run out; [T, ...] for all lanes or [lanes, T, ...]."""
    try:
        actions: NDArray[Any] = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read the actions {path}: {reason(error)}") from None
    except NOT_AN_ARRAY as error:
        raise UserError(f"{path} is not an array of actions: {reason(error)}") from None
    for_all = 1 + len(space.shape)
    if actions.ndim == for_all + 1 and len(actions) == lanes:
        actions = actions[lane]
    if actions.ndim != for_all or not len(actions):
        shape = ["T", *space.shape]
        raise UserError(f"{path} holds {list(actions.shape)}; actions are {shape}, or {[lanes, *shape]} by lane")
    position = iter(range(2**62))
    return lambda _: actions[next(position) % len(actions)]


def _agent(path: Path) -> Policy:
    """A Stable-Baselines3 model. The file does not name its algorithm, but its settings identify it."""
    try:
        import stable_baselines3
        import torch
    except ImportError as error:
        raise UserError(f"the policy {path} needs Stable-Baselines3: pip install 'manicap[rl]' ({error})") from None
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("data"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is not a model of Stable-Baselines3: {reason(error)}") from None
    algorithm = next((name for name, key in ALGORITHMS.items() if key in settings), "A2C")
    seeded = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with users_code(f"the policy {path}", f"to be loaded as {algorithm}"), torch.random.fork_rng(seeded):
        model = getattr(stable_baselines3, algorithm).load(path, device="cpu")
    return lambda observation: model.predict(observation, deterministic=True)[0]
