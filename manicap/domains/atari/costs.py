"""Estimated costs of a run on a game: samples per epoch, seconds of play."""

import time
from functools import cache
from pathlib import Path

from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.store import StoreConfig, store_path
from manicap.domains.atari.config import AtariConfig
from manicap.domains.play.costs import frames_per_sample
from manicap.domains.play.samples import FrameSamples, windows_per_epoch
from manicap.play.protocol import find_protocol
from manicap.play.splits import pretrain_splits

EMULATOR_SECONDS = 0.5
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


def samples_per_epoch(config: AtariConfig, data_dir: Path) -> int:
    """Samples per epoch, counted as in training: from the store, or estimated if there is none yet."""
    frames = frames_per_sample(config.method, config.settings)
    if store_path(config.store_config, data_dir).is_dir():
        return _samples_of_store(config.store_config, data_dir, config.protocol, frames)
    return expected_samples(config, frames)


def expected_samples(config: AtariConfig, frames: int) -> int:
    """Samples per epoch, estimated from the length of lives in random play."""
    num_frames = int(TRAIN_SHARE * config.collect_steps)
    if frames <= 2:
        return num_frames
    lives = LIVES_IN_10_000_STEPS[config.game][frames > find_protocol(config.protocol).longest_dropped_episode]
    all_lives = lives * config.collect_steps / 10_000 + config.lanes  # those that end, and the last one in each lane
    return windows_per_epoch(int(TRAIN_SHARE * all_lives), num_frames, frames)


@cache
def _samples_of_store(config: StoreConfig, data_dir: Path, protocol: str, frames: int) -> int:
    store, rules = open_store(store_path(config, data_dir)), find_protocol(protocol)
    return FrameSamples(store, pretrain_splits(store, rules, config.seed).train, rules, frames).per_epoch


def emulator_seconds(game: str) -> float:
    """Seconds per step of one lane."""
    lane = Lane(find_game(game), 0, 0)
    lane.reset()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < EMULATOR_SECONDS:
        lane.step(lane.random_action())
        steps += 1
    return (time.perf_counter() - start) / steps
