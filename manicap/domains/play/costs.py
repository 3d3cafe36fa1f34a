"""Estimated costs of probing play, and what a sample of a method is."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import MethodContext, Settings
from manicap.domains.evaluation import TargetKind
from manicap.domains.play.evaluation_config import PlayEvaluationConfig
from manicap.play.protocol import find_protocol
from manicap.probing.knn import NearestNeighbors
from manicap.probing.layers import LABELS as LAYER_LABELS
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.logistic import LogisticConfig, LogisticProbes
from manicap.probing.pixels import PIXEL_WIDTH
from manicap.probing.probes import STEPS_AN_EPOCH, Probe, find_probe
from manicap.probing.ridge import FEW, MANY, RATIOS
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from manicap.probing.subsets import FOLDS, draw_subsets

PROBE_EPOCHS = 40
"""Epochs after which a linear probe is assumed to stop."""
LOGISTIC_SAMPLE = 4
"""Measured iterations of a logistic probe, which is assumed to use all it is allowed."""
PROBE_ROWS, LINEAR_ROWS, RIDGE_ROWS = 1024, 256, 400
NUM_VARIABLES, NUM_VALUES, NUM_NAMES = 12, 40, 2
"""Of a typical game."""
RATIOS_TRIED = len(RATIOS[::2]) + 2
"""Whole decades, and the two half decades beside the best."""
NUM_LAYERS = 5
"""Layers of a typical network, which the ridge probe reads too."""
LARGEST_SOLVED = 1024
"""The largest system of equations that is measured; the time of a larger one grows with its cube."""
EIGENVECTORS = 8
"""Their seconds, in those of as many equations."""
PROBE_SHARE = 0.7


@cache
def frames_per_sample(method: str, settings: Settings) -> int:
    """Frames per sample of a method, which may depend on its settings; no weights are allocated."""
    with torch.device("meta"):
        return find_method(method)(settings, MethodContext(num_variables=1)).frames_per_sample


def probe_seconds(evaluation: PlayEvaluationConfig, width: int) -> float:
    """Seconds of fitting one probe on the evaluation's training frames, and on one of its floors of pixels if any."""
    if evaluation.probe == "ridge":
        frames, seen = int(PROBE_SHARE * evaluation.probe_steps), evaluation.width or width
        layers = NUM_LAYERS * FOLDS * RATIOS_TRIED * _solve_seconds(LAYER_LABELS)
        return ridge_seconds(frames, seen) + layers + ridge_seconds(frames, min(seen, PIXEL_WIDTH))
    if evaluation.probe == "discriminant":
        frames, seen = int(PROBE_SHARE * evaluation.probe_steps), evaluation.width or width
        return discriminant_seconds(frames, seen) + discriminant_seconds(frames, min(seen, PIXEL_WIDTH))
    asked = {name: getattr(evaluation, name) for name in ("probe", "probe_steps", "protocol", "probe_init")}
    return _probe_seconds(type(evaluation)(**asked), evaluation.width or width)


@cache
def _probe_seconds(evaluation: PlayEvaluationConfig, width: int) -> float:
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
        folds = FOLDS if count <= MANY else 1
        added += folds * RATIOS_TRIED * _solve_seconds(min(count, width))
    if frames > FEW:
        added += EIGENVECTORS * _solve_seconds(width)
    return some + names * len(_subset_sizes(frames)) / len(_subset_sizes(RIDGE_ROWS)) + added


def discriminant_seconds(frames: int, width: int) -> float:
    """Seconds of one discriminant probe: a Gram matrix, and a system of equations for each ratio that is tried."""
    systems = (FOLDS if frames <= MANY else 1) * RATIOS_TRIED
    return frames * _product_seconds(width) + systems * _solve_seconds(min(frames, width))


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
