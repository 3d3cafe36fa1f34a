"""How many steps a run will take, counted as the training counts them: from its store, or before there is one."""

from functools import cache
from pathlib import Path

import torch

from manicap.atari.integrity import open_store
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import pretrain_splits
from manicap.atari.store import StoreConfig, store_path
from manicap.bench.costs import count_images
from manicap.methods import find_method
from manicap.methods.base import MethodContext, Settings
from manicap.train.batches import Samples, windows_per_epoch
from manicap.train.config import PretrainConfig
from manicap.train.image_config import ImageConfig
from manicap.train.run_config import RunConfig
from manicap.train.setup import count_steps

TRAIN_SHARE = 0.8
LIVES_IN_10_000_STEPS = {
    "asteroids": (48, 37),
    "battle_zone": (51, 44),
    "berzerk": (52, 20),
    "bowling": (5, 5),
    "boxing": (6, 6),
    "breakout": (51, 9),
    "demon_attack": (41, 35),
    "freeway": (5, 5),
    "frostbite": (86, 51),
    "hero": (74, 26),
    "montezuma_revenge": (46, 36),
    "ms_pacman": (59, 55),
    "pitfall": (30, 21),
    "pong": (11, 11),
    "private_eye": (4, 4),
    "qbert": (94, 17),
    "riverraid": (56, 41),
    "seaquest": (69, 37),
    "skiing": (8, 8),
    "space_invaders": (56, 44),
    "tennis": (5, 5),
    "venture": (24, 24),
    "video_pinball": (18, 16),
    "yars_revenge": (43, 35),
}
"""Lives of more than 64 frames, and of at least 100, in 10,000 steps of random play; measured over 9,000 to 12,000."""


def num_steps(config: RunConfig, data_dir: Path) -> int:
    """Training steps at most."""
    if isinstance(config, ImageConfig):
        return count_steps(config, min(count_images(config)[0], config.num_images or 10**9))
    assert isinstance(config, PretrainConfig)
    frames = frames_per_sample(config.method, config.settings)
    if store_path(config.store_config, data_dir).is_dir():
        return count_steps(config, _samples_of_store(config.store_config, data_dir, config.protocol, frames))
    return count_steps(config, expected_samples(config, frames))


def expected_samples(config: PretrainConfig, frames: int) -> int:
    """Samples of an epoch, from how long lives are in random play."""
    num_frames = int(TRAIN_SHARE * config.collect_steps)
    if frames <= 2:
        return num_frames
    lives = LIVES_IN_10_000_STEPS[config.game][frames > find_protocol(config.protocol).longest_dropped_episode]
    all_lives = lives * config.collect_steps / 10_000 + config.lanes  # those that end, and the last one of every lane
    return windows_per_epoch(int(TRAIN_SHARE * all_lives), num_frames, frames)


@cache
def frames_per_sample(method: str, settings: Settings) -> int:
    """Of an Atari method, which may depend on its settings; no weights are made."""
    with torch.device("meta"):
        return find_method(method)(settings, MethodContext(num_variables=1)).frames_per_sample


@cache
def _samples_of_store(config: StoreConfig, data_dir: Path, protocol: str, frames: int) -> int:
    store, rules = open_store(store_path(config, data_dir)), find_protocol(protocol)
    return Samples(store, pretrain_splits(store, rules, config.seed).train, rules, frames).per_epoch
