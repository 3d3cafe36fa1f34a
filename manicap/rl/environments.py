"""Environments of a game for Stable-Baselines3 agents, with or without an encoder, in one call."""

from typing import Any

from gymnasium.vector import VectorEnv

from manicap.atari.vector import make_vec
from manicap.core.config import checked
from manicap.core.errors import UserError
from manicap.core.ranges import Lanes, Seed, Threads, Width
from manicap.play.store import PlayStore
from manicap.play.views import CONSOLE, Side, Stack
from manicap.rl.features import EncoderSource, feature_map
from manicap.rl.vec_env import VectorAdapter
from manicap.rl.wrappers import EncodeVectorObservation


@checked
def make_env(
    game: str,
    encoder: EncoderSource | None = None,
    num_envs: Lanes = 8,
    *,
    layer: str | None = None,
    width: Width | None = None,
    standardise: PlayStore | None = None,
    stack: Stack = 1,
    size: tuple[Side, Side] | None = None,
    colour: bool = False,
    clip_rewards: bool = True,
    episodic_life: bool = True,
    seed: Seed | None = None,
    num_workers: Threads | None = None,
) -> VectorAdapter:
    """Make environments in which an SB3 agent plays a game on an encoder's features, or on frames.

        envs = manicap.rl.make_env("pong", run, num_envs=8, layer="backbone", stack=4)
        PPO("MlpPolicy", envs).learn(100_000)
        agent = PPO("CnnPolicy", manicap.rl.make_env("pong", num_envs=8, stack=4, size=(84, 84)))     # frames

    Frames are prepared as the encoder needs them: four raw frames per step, maximum of the last two, gray 210 x 160
    unless it was trained on others. The rest is what SB3's `AtariWrapper` does: 1 to 30 no-op frames at the start of a
    game, fire at the start of a life where the game has it, a life as an episode, rewards clipped to their sign, no
    sticky actions. Returns in `info["episode"]` are of whole games and unclipped.

    Args:
        game: Game, under any of its usual names.
        encoder: Directory of a run, or any other encoder or `FeatureMap`; if omitted, observations are frames.
        num_envs: Number of environments; the encoder is called once per step for all of them.
        layer: Layer of the encoder: `output`, `backbone` or `local`.
        width: Project features to this many dimensions.
        standardise: A store of play, whose features determine the mean and deviation used to standardise.
        stack: Number of last frames in an observation, or of their features.
        size: Height and width of frames; only without an encoder.
        colour: Frames in colour; only without an encoder.
        clip_rewards: Learn from the sign of rewards.
        episodic_life: Whether a lost life ends an episode.
        seed: Random seed of the games; the agent's seed, if it has one, takes precedence.
        num_workers: Number of processes that play, including this one; see `manicap.make_vec`.
    """
    playing: dict[str, Any] = {
        "clip_rewards": clip_rewards,
        "episodic_life": episodic_life,
        "num_workers": num_workers,
    }
    envs: VectorEnv[Any, Any, Any]
    if encoder is None:
        if layer is not None or width is not None or standardise is not None:
            raise UserError("layer, width and standardise need an encoder")
        envs = make_vec(game, num_envs, colour=colour, stack=stack, size=size, **playing)
    else:
        if colour or size is not None:
            raise UserError("colour and size are the encoder's own: give them without an encoder only")
        features = feature_map(encoder, layer=layer, width=width, standardise=standardise)
        seen, (_, height, side) = features.view, features.input_shape
        own_size = None if (height, side) == CONSOLE else (height, side)
        frames = make_vec(game, num_envs, colour=seen.colour, stack=seen.stack, size=own_size, **playing)
        envs = EncodeVectorObservation(frames, features, stack=stack)
    found = VectorAdapter(envs)
    if seed is not None:
        found.seed(seed)
    return found
