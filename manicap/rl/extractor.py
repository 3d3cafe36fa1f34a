"""An encoder inside a Stable-Baselines3 agent, frozen or fine-tuned.

    kwargs = ManicapExtractor.policy_kwargs(run, layer="backbone", frozen=False)
    PPO("CnnPolicy", manicap.rl.make_env("pong"), policy_kwargs=kwargs)

A model saved with these arguments holds the encoder's structure, and its weights once, among the policy's.
`PPO.load(path)` loads it without the run. (SB3 builds the policy from its saved arguments and then loads the weights.)

Keep a frozen encoder outside the agent, with `manicap.rl.make_env(game, encoder)`. Inside, PPO encodes a frame again in
every epoch, and a replay buffer holds frames instead of features.
"""

import copy
from collections.abc import Callable
from typing import Any, Self

import gymnasium
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from manicap.core.errors import UserError
from manicap.core.ranges import Seed, Width
from manicap.play.store import PlayStore
from manicap.rl.features import EncoderSource, FeatureMap, feature_map
from manicap.rl.frames import require_frames


class Blueprint:
    """A feature map to build extractors from. Its pickle keeps the structure without the weights."""

    def __init__(self, features: FeatureMap) -> None:
        self.features = features

    @property
    def has_weights(self) -> bool:
        return not any(value.is_meta for value in self.features.state_dict().values())

    def build(self) -> FeatureMap:
        """A separate feature map; if the blueprint has no weights, they must still be loaded."""
        found = copy.deepcopy(self.features)
        return found if self.has_weights else found.to_empty(device="cpu")

    def __getstate__(self) -> dict[str, Any]:
        saved = self.features.state_dict().keys()
        if any(name not in saved for name, _ in self.features.named_buffers()):
            return {"features": self.features}  # a policy's weights would not include all of it
        return {"features": copy.deepcopy(self.features).to("meta")}


class ManicapExtractor(BaseFeaturesExtractor):
    """A features extractor for SB3's policies; `policy_kwargs` has its arguments.

    Args:
        observation_space: Frames uint8 of the encoder's shape, as `manicap.rl.make_env(game)` gives them.
        encoder: As in `manicap.rl.feature_map`, like `layer`, `width`, `seed` and `standardise`.
        frozen: Keep the encoder's weights fixed; otherwise the agent trains them too.
        is_scaled: Whether frames are divided by 255, as they are unless the policy has `normalize_images=False`.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        encoder: EncoderSource | Blueprint,
        *,
        layer: str | None = None,
        width: Width | None = None,
        seed: Seed = 0,
        standardise: PlayStore | None = None,
        frozen: bool = True,
        is_scaled: bool = True,
    ) -> None:
        if not isinstance(encoder, Blueprint):
            encoder = Blueprint(_feature_map(observation_space, encoder, layer, width, seed, standardise))
        features = encoder.build()
        require_frames(observation_space, features.input_shape)
        super().__init__(observation_space, features.num_features)
        self.features, self.frozen, self.is_scaled = features, frozen, is_scaled
        self.features.requires_grad_(not frozen)
        self._waits_for_weights = not encoder.has_weights
        self.register_load_state_dict_post_hook(_has_weights_now)

    @classmethod
    def policy_kwargs(
        cls,
        encoder: EncoderSource,
        *,
        layer: str | None = None,
        width: Width | None = None,
        seed: Seed = 0,
        standardise: PlayStore | None = None,
        frozen: bool = True,
    ) -> dict[str, Any]:
        """The `policy_kwargs` of an agent that sees frames through an encoder.

        DQN("CnnPolicy", envs, policy_kwargs=ManicapExtractor.policy_kwargs(run))
        """
        features = feature_map(encoder, layer=layer, width=width, seed=seed, standardise=standardise)
        kwargs = {"encoder": Blueprint(features), "frozen": frozen}
        return {"features_extractor_class": cls, "features_extractor_kwargs": kwargs}

    def forward(self, observations: Tensor) -> Tensor:
        if self._waits_for_weights:
            raise UserError("this policy was built from a saved structure, and its weights were not loaded yet")
        # The encoder sees exactly the bytes that it was trained on: k / 255 * 255 rounds to k.
        frames = (observations * 255 if self.is_scaled else observations).round().to(torch.uint8)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            found: Tensor = self.features(frames)
        return found

    def train(self, mode: bool = True) -> Self:
        """Set the mode; a frozen encoder stays in eval mode."""
        super().train(mode)
        self.features.train(mode and not self.frozen)
        return self

    def apply(self, fn: Callable[[nn.Module], None]) -> Self:
        """Do nothing: SB3's actor-critic policies initialise extractors again, which would erase what was learned."""
        return self


def _has_weights_now(module: nn.Module, _: Any) -> None:
    assert isinstance(module, ManicapExtractor)
    module._waits_for_weights = False


def _feature_map(
    space: gymnasium.Space[Any],
    encoder: EncoderSource,
    layer: str | None,
    width: int | None,
    seed: int,
    standardise: PlayStore | None,
) -> FeatureMap:
    shape = (space.shape or ()) if isinstance(encoder, nn.Module) else ()
    own: Any = shape if len(shape) == 3 else None
    return feature_map(encoder, layer=layer, width=width, seed=seed, standardise=standardise, input_shape=own)
