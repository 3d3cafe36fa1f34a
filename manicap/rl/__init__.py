"""Encoders for Stable-Baselines3 agents (extra `rl`).

    envs = manicap.rl.make_env("pong", run, num_envs=8)          # features, each frame encoded once
    PPO("MlpPolicy", envs).learn(100_000)

    envs = manicap.rl.make_env("pong", num_envs=8)               # frames, for an extractor inside the agent
    PPO("CnnPolicy", envs, policy_kwargs=manicap.rl.ManicapExtractor.policy_kwargs(run, frozen=False))

`EncodeObservation` and `EncodeVectorObservation` wrap any gymnasium environment with frames, and need no extra.
`ProbeCallback` probes the agent's own features extractor while it learns.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manicap.core.errors import UserError

if TYPE_CHECKING:
    from manicap.rl.environments import make_env
    from manicap.rl.extractor import ManicapExtractor
    from manicap.rl.features import FeatureMap, feature_map
    from manicap.rl.probing import ProbeCallback
    from manicap.rl.wrappers import EncodeObservation, EncodeVectorObservation

_LAZY = {
    "EncodeObservation": "manicap.rl.wrappers",
    "EncodeVectorObservation": "manicap.rl.wrappers",
    "FeatureMap": "manicap.rl.features",
    "ManicapExtractor": "manicap.rl.extractor",
    "ProbeCallback": "manicap.rl.probing",
    "feature_map": "manicap.rl.features",
    "make_env": "manicap.rl.environments",
}
__all__ = [
    "EncodeObservation",
    "EncodeVectorObservation",
    "FeatureMap",
    "ManicapExtractor",
    "ProbeCallback",
    "feature_map",
    "make_env",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'manicap.rl' has no attribute {name!r}")
    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "stable_baselines3":
            raise
        raise UserError(f"manicap.rl.{name} needs Stable-Baselines3: pip install 'manicap[rl]'") from None
