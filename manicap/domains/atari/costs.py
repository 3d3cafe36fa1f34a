"""Estimated costs of a run on a game: samples per epoch, seconds of play, seconds of probing."""

import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import MethodContext, Settings
from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import pretrain_splits
from manicap.atari.store import StoreConfig, store_path
from manicap.domains.atari.config import AtariConfig
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.atari.samples import FrameSamples, windows_per_epoch
from manicap.probing.knn import NearestNeighbors
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.logistic import LogisticConfig, LogisticProbes
from manicap.probing.probes import STEPS_AN_EPOCH, Probe, find_probe
from manicap.probing.sampling import ProbeData

PROBE_EPOCHS = 40
"""Epochs after which a linear probe is assumed to stop."""
LOGISTIC_SAMPLE = 4
"""Measured iterations of a logistic probe, which is assumed to use all it is allowed."""
PROBE_ROWS, LINEAR_ROWS = 1024, 256
NUM_VARIABLES, NUM_VALUES = 12, 40
"""Values of a typical game."""
PROBE_SHARE = 0.7
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
def frames_per_sample(method: str, settings: Settings) -> int:
    """Frames per sample of a method, which may depend on its settings; no weights are allocated."""
    with torch.device("meta"):
        return find_method(method)(settings, MethodContext(num_variables=1)).frames_per_sample


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


def probe_seconds(evaluation: AtariEvaluationConfig, width: int) -> float:
    """Seconds of fitting one probe on the evaluation's training frames."""
    asked = {name: getattr(evaluation, name) for name in ("probe", "probe_steps", "protocol", "probe_init")}
    return _probe_seconds(AtariEvaluationConfig(**asked), evaluation.width or width)


@cache
def _probe_seconds(evaluation: AtariEvaluationConfig, width: int) -> float:
    rows = LINEAR_ROWS if evaluation.probe == "linear" else PROBE_ROWS
    rng = np.random.default_rng(0)
    features = rng.random((rows, width), np.float32)
    labels = rng.integers(0, NUM_VALUES, (rows, NUM_VARIABLES), dtype=np.uint8)
    data = ProbeData(features, labels, np.arange(rows) // 64)
    more_rows = PROBE_SHARE * evaluation.probe_steps / rows
    if evaluation.probe == "linear":
        one = LinearProbes(
            LinearConfig(max_epochs=1, init=evaluation.resolved_init), find_protocol(evaluation.protocol)
        )
        epochs = PROBE_EPOCHS * max(1, STEPS_AN_EPOCH // evaluation.probe_steps)
        return _fit_seconds(one, data) * epochs * more_rows
    if evaluation.probe == "knn":
        return _fit_seconds(NearestNeighbors(), data) * more_rows
    if evaluation.probe != "logistic":
        rules = find_protocol(evaluation.protocol)
        return _fit_seconds(find_probe(evaluation.probe, evaluation.probe_steps)(rules, 0, True), data) * more_rows
    # Two fits separate the iterations from the eigenvectors, which are computed once, whatever the number of rows.
    few, many = (
        _fit_seconds(LogisticProbes(LogisticConfig(max_iterations=count)), data)
        for count in (LOGISTIC_SAMPLE, 3 * LOGISTIC_SAMPLE)
    )
    iteration = max(0.0, many - few) / (2 * LOGISTIC_SAMPLE)
    once = max(0.0, few - LOGISTIC_SAMPLE * iteration)
    return once + LogisticConfig.max_iterations * iteration * more_rows


def _fit_seconds(probe: Probe, data: ProbeData) -> float:
    start = time.perf_counter()
    probe.fit(data, data).predict(data.features)
    return time.perf_counter() - start
