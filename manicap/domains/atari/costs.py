"""Estimated costs of a run on a game: samples per epoch, seconds of play, seconds of probing."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

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
from manicap.domains.evaluation import TargetKind
from manicap.probing.knn import NearestNeighbors
from manicap.probing.layers import LABELS as LAYER_LABELS
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.logistic import LogisticConfig, LogisticProbes
from manicap.probing.pixels import PIXEL_WIDTH
from manicap.probing.probes import STEPS_AN_EPOCH, Probe, find_probe
from manicap.probing.ridge import FEW, RATIOS
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from manicap.probing.subsets import FOLDS, draw_subsets

PROBE_EPOCHS = 40
"""Epochs after which a linear probe is assumed to stop."""
LOGISTIC_SAMPLE = 4
"""Measured iterations of a logistic probe, which is assumed to use all it is allowed."""
PROBE_ROWS, LINEAR_ROWS, RIDGE_ROWS = 1024, 256, 400
NUM_VARIABLES, NUM_VALUES, NUM_NAMES = 12, 40, 2
"""Values of a typical game."""
RATIOS_TRIED = len(RATIOS[::2]) + 2
"""Whole decades, and the two half decades beside the best."""
NUM_LAYERS = 5
"""Layers of a typical network, which the ridge probe reads too."""
LARGEST_SOLVED = 1024
"""The largest system of equations that is measured; the time of a larger one grows with its cube."""
EIGENVECTORS = 8
"""Their seconds, in those of as many equations."""
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
    """Seconds of fitting one probe on the evaluation's training frames, and on one of its floors of pixels if any."""
    if evaluation.probe == "ridge":
        frames, seen = int(PROBE_SHARE * evaluation.probe_steps), evaluation.width or width
        layers = NUM_LAYERS * FOLDS * RATIOS_TRIED * _solve_seconds(LAYER_LABELS)
        return ridge_seconds(frames, seen) + layers + ridge_seconds(frames, min(seen, PIXEL_WIDTH))
    if evaluation.probe == "discriminant":
        frames, seen = int(PROBE_SHARE * evaluation.probe_steps), evaluation.width or width
        return discriminant_seconds(frames, seen) + discriminant_seconds(frames, min(seen, PIXEL_WIDTH))
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


def ridge_seconds(frames: int, width: int) -> float:
    """Seconds of one ridge probe: those of a fit to few frames, then what more of them add.

    Frames add products of features, as many as the square of the width. Every larger subset of the labels adds systems
    of equations, one for each feature, or for each frame if these are fewer; and a fit of the names, whose
    hundreds of small steps take about as long for few frames as for many.
    """
    some, names = _ridge_sample_seconds(width)
    added = frames * _product_seconds(width)
    for count in _subset_sizes(frames)[len(_subset_sizes(RIDGE_ROWS)) :]:
        folds = FOLDS if count <= FEW else 1
        added += folds * RATIOS_TRIED * _solve_seconds(min(count, width))
    if frames > FEW:
        added += EIGENVECTORS * _solve_seconds(width)
    return some + names * len(_subset_sizes(frames)) / len(_subset_sizes(RIDGE_ROWS)) + added


def discriminant_seconds(frames: int, width: int) -> float:
    """Seconds of one discriminant probe: a Gram matrix, and a system of equations for each ratio that is tried."""
    folds = FOLDS if frames <= FEW else 1
    return frames * _product_seconds(width) + folds * RATIOS_TRIED * _solve_seconds(min(frames, width))


def _subset_sizes(frames: int) -> list[int]:
    """Sizes of all subsets of the labels that are fitted, the small ones first."""
    return sorted(count for draw in draw_subsets(frames, 0) for count in draw.counts)


@cache
def _ridge_sample_seconds(width: int) -> tuple[float, float]:
    """Seconds of a fit to `RIDGE_ROWS` frames: of places and numbers, and what names add."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((RIDGE_ROWS, width), np.float32)
    # Learnable, as a game's are: labels without any relation to the features take longer to fit.
    maps = rng.standard_normal((width, NUM_VARIABLES), np.float32) / width**0.5
    noise = 0.5 * rng.standard_normal((RIDGE_ROWS, NUM_VARIABLES), np.float32)
    labels = (NUM_VALUES / 2 + 10 * (features @ maps + noise)).clip(0, NUM_VALUES - 1).astype(np.uint8)
    labels[:, :NUM_NAMES] //= 8
    seconds = []
    for names in (0, NUM_NAMES):
        numbers: list[TargetKind] = ["number"] * (NUM_VARIABLES - NUM_NAMES)
        named: list[TargetKind] = ["class"] * names
        kinds = (*named, *numbers)
        chosen = labels[:, NUM_NAMES - names :]
        seconds.append(_fit_seconds(RidgeProbes(), ProbeData(features, chosen, np.arange(RIDGE_ROWS) // 64, kinds)))
    return seconds[0], max(0.0, seconds[1] - seconds[0])


@cache
def _solve_seconds(size: int) -> float:
    """Seconds of a system of equations, factorized by Cholesky, for all values of a typical game."""
    measured = min(size, LARGEST_SOLVED)
    matrix = torch.eye(measured, dtype=torch.float64) * measured + 1
    right = torch.ones(measured, NUM_VARIABLES, dtype=torch.float64)
    seconds = _fastest(lambda: torch.cholesky_solve(right, torch.linalg.cholesky(matrix)))
    return seconds * (size / measured) ** 3


@cache
def _product_seconds(width: int) -> float:
    """Seconds of the products of all pairs of features, per frame."""
    z = torch.ones(RIDGE_ROWS, width, dtype=torch.float64)
    return _fastest(lambda: z.T @ z) / RIDGE_ROWS


def _fastest(call: Callable[[], Any]) -> float:
    """Of three: other load only adds time."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _fit_seconds(probe: Probe, data: ProbeData) -> float:
    start = time.perf_counter()
    probe.fit(data, data).predict(data.features)
    return time.perf_counter() - start
