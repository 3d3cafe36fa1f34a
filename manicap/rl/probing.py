"""Probes what an agent's own features contain about the state of the game, while it learns.

    store = manicap.collect(manicap.StoreConfig("pong", 12_000, purpose="probe"))
    agent.learn(100_000, callback=manicap.rl.ProbeCallback(store, every_steps=20_000))

Frames of a store, collected once, pass through the agent's current features extractor, and a probe reads the state
variables from the features.
"""

from typing import Annotated, Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import Tensor, nn

from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.core.ranges import Count, Range, Seed
from manicap.play.store import PlayStore
from manicap.play.views import View
from manicap.probing.encoders import FrameEncoder
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.state_result import StateEvaluation
from manicap.rl.features import view_of


class ProbeCallback(BaseCallback):
    """Logs `probe/f1` (exact values) and `probe/r2` (places and numbers), each the mean over the categories.

        callback = manicap.rl.ProbeCallback(store, every_steps=20_000)
        agent.learn(100_000, callback=callback)
        callback.evaluations[20_000].f1

    Args:
        store: Frames and state of the game that the agent plays.
        every_steps: Steps of the agent between two probes; the first probe is before it learns.
        probe: `discriminant` (all labels, seconds), or another name of `manicap.evaluate`.
        annotation_set: `ari-2019`, `ari-2020` or `corrected`.
        seed: Random seed of the splits and the probe.
        view: How the agent sees frames; inferred from the shape of its observations if omitted.
        verbose: 1 prints each result.
    """

    @checked
    def __init__(
        self,
        store: PlayStore,
        every_steps: Count = 20_000,
        *,
        probe: str = "discriminant",
        annotation_set: str = "corrected",
        seed: Seed = 0,
        view: View | None = None,
        verbose: Annotated[int, Range(0, 2)] = 0,
    ) -> None:
        super().__init__(verbose)
        self.store, self.every_steps, self.probe = store, every_steps, probe
        self.annotation_set, self.seed, self.view = annotation_set, seed, view
        self.evaluations: dict[int, StateEvaluation] = {}
        """Results by number of steps of the agent."""
        self._bench: PlayBench | None = None
        self._next = 0

    def _on_training_start(self) -> None:
        space = self.model.observation_space
        if space.shape is None or len(space.shape) != 3:
            raise UserError(
                f"ProbeCallback needs an agent that sees frames, got observations {list(space.shape or ())}; features"
                " of EncodeObservation do not change: probe the encoder once, with manicap.evaluate"
            )
        channels, height, width = space.shape
        view = self.view or view_of((channels, height, width))
        self._bench = PlayBench(self.store, annotation_set=self.annotation_set, seed=self.seed, view=view)
        self._next = self.num_timesteps
        self._measure()

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            self._measure()
        return True

    def _measure(self) -> None:
        assert self._bench is not None
        policy = self.model.policy
        was_training = policy.training
        policy.set_training_mode(False)
        encoder = FrameEncoder(self._encode, arrays="torch")
        found = self._bench.evaluate(encoder, self.probe, floors={}, extraction=Extraction(quiet=True))
        policy.set_training_mode(was_training)
        self._next = self.num_timesteps + self.every_steps
        self.evaluations[self.num_timesteps] = found
        self.logger.record("probe/f1", found.f1)
        if found.scores.overall.r2 is not None:
            self.logger.record("probe/r2", found.scores.overall.r2)
        if self.verbose:
            print(f"{self.num_timesteps} steps: F1 {found.f1:.3f}")

    def _encode(self, frames: Tensor) -> Tensor:
        policy = self.model.policy
        seen: Any = preprocess_obs(frames.to(policy.device), policy.observation_space, policy.normalize_images)
        with torch.no_grad():
            features: Tensor = _extractor_of(policy)(seen)
        return features


def _extractor_of(policy: Any) -> nn.Module:
    """The extractor of an actor-critic policy, or of the first network that has one (DQN's, SAC's)."""
    for owner in (policy, *(getattr(policy, name, None) for name in ("q_net", "actor", "critic"))):
        found = getattr(owner, "features_extractor", None)
        if isinstance(found, nn.Module):
            return found
    raise UserError(f"{type(policy).__name__} has no features extractor to probe")
