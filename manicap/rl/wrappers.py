"""Encode frames in the environment: each frame is encoded once, and buffers hold features.

    env = manicap.rl.EncodeObservation(env, run)                  # one environment
    envs = manicap.rl.EncodeVectorObservation(envs, run)          # many; one call of the encoder per step for all

A stack holds the features of the last frames side by side, oldest first, so that an agent can see motion. The first
frame of an episode is repeated.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.play.views import Stack
from manicap.rl.features import EncoderSource, feature_map
from manicap.rl.frames import channels_first

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class EncodeObservation(gymnasium.Wrapper[Floats, Any, Any, Any]):
    """Observe features float32 [stack * F] instead of frames.

        env = manicap.rl.EncodeObservation(env, run, layer="backbone", width=256, stack=4)

    Args:
        env: An environment whose observations are the encoder's frames: uint8 [C, H, W], [H, W, C] or [H, W].
        encoder: A `FeatureMap`, or any encoder that `manicap.rl.feature_map` accepts.
        stack: Number of frames whose features form an observation.
        options: `layer`, `width`, `seed`, `standardise` of `manicap.rl.feature_map`.
    """

    @checked
    def __init__(
        self, env: gymnasium.Env[Any, Any], encoder: EncoderSource, *, stack: Stack = 1, **options: Any
    ) -> None:
        super().__init__(env)
        self.features = feature_map(encoder, **options)
        self._frames = channels_first(env.observation_space, self.features.input_shape)
        self._stack = FeatureStack(1, stack, self.features.num_features)
        self.observation_space = self._stack.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        frame, info = self.env.reset(seed=seed, options=options)
        return self._stack.start(self._encode(frame))[0], info

    def step(self, action: Any) -> tuple[Floats, Any, bool, bool, dict[str, Any]]:
        frame, reward, terminated, truncated, info = self.env.step(action)
        return self._stack.push(self._encode(frame))[0], reward, terminated, truncated, info

    def _encode(self, frame: Any) -> Floats:
        return self.features.encode(self._frames(np.asarray(frame)[None]))


class EncodeVectorObservation(VectorWrapper[Floats, Any, Any, Any, Any]):
    """The same for a vector environment that resets by itself: one call of the encoder per step.

    envs = manicap.rl.EncodeVectorObservation(manicap.make_vec("pong", 8), run, stack=4)
    """

    @checked
    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        encoder: EncoderSource,
        *,
        stack: Stack = 1,
        **options: Any,
    ) -> None:
        super().__init__(env)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self._mode == AutoresetMode.DISABLED:
            raise UserError("EncodeVectorObservation needs environments that reset by themselves (autoreset_mode)")
        self.features = feature_map(encoder, **options)
        self._frames = channels_first(env.single_observation_space, self.features.input_shape)
        self._stack = FeatureStack(env.num_envs, stack, self.features.num_features)
        self._begins: Mask = np.zeros(env.num_envs, bool)
        self.single_observation_space = self._stack.space
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        frames, info = self.env.reset(seed=seed, options=options)
        self._begins[:] = False
        return self._stack.start(self.features.encode(self._frames(frames))), info

    def step(self, actions: Any) -> tuple[Floats, Any, Any, Any, dict[str, Any]]:
        frames, rewards, terminated, truncated, info = self.env.step(actions)
        ended: Mask = np.asarray(terminated | truncated)
        if self._mode == AutoresetMode.NEXT_STEP:
            found = self._stack.push(self.features.encode(self._frames(frames)), self._begins)
            self._begins = ended
            return found, rewards, terminated, truncated, info
        last = [info["final_obs"][index] for index in np.flatnonzero(ended)]
        every = self.features.encode(self._frames(np.stack([*frames, *last]) if last else frames))
        features, final = every[: len(frames)], every[len(frames) :]
        if last:
            shown = features.copy()
            shown[ended] = final
            stacks, observations = self._stack.push(shown), np.full(len(frames), None, object)
            for index in np.flatnonzero(ended):
                observations[index] = stacks[index]
            info = {**info, "final_obs": observations}
            return self._stack.begin(features, ended), rewards, terminated, truncated, info
        return self._stack.push(features), rewards, terminated, truncated, info


class FeatureStack:
    """The features of the last frames of every environment."""

    def __init__(self, num_envs: int, stack: int, num_features: int) -> None:
        self._held = np.zeros((num_envs, stack, num_features), np.float32)
        self.space = gymnasium.spaces.Box(-np.inf, np.inf, (stack * num_features,), np.float32)

    @property
    def shown(self) -> Floats:
        """[N, stack * F], a copy."""
        return self._held.reshape(len(self._held), -1).copy()

    def start(self, features: Floats) -> Floats:
        """Start an episode in all environments, with these first frames."""
        self._held[:] = features[:, None]
        return self.shown

    def begin(self, features: Floats, where: Mask) -> Floats:
        """Start an episode in the environments `where`, with these first frames."""
        self._held[where] = features[where, None]
        return self.shown

    def push(self, features: Floats, begins: Mask | None = None) -> Floats:
        """Append the next frames of all environments; those in `begins` are the first of an episode."""
        self._held[:, :-1] = self._held[:, 1:]
        self._held[:, -1] = features
        return self.shown if begins is None else self.begin(features, begins)
