"""Seconds of a few measured steps: training, encoding and probing, for one kind of run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from manicap.atari.emulator import Lane
from manicap.atari.games import find_game
from manicap.atari.protocol import find_protocol
from manicap.bench.evaluation import EvaluationConfig
from manicap.bench.grid import Cell
from manicap.bench.image_evaluation import NUM_IMAGES, ImageEvaluationConfig
from manicap.evaluate.evaluation import STEPS_AN_EPOCH, Probe
from manicap.evaluate.knn import NearestNeighbors
from manicap.evaluate.logistic import LogisticConfig, LogisticProbes
from manicap.evaluate.probes import LinearConfig, LinearProbes, ProbeInit
from manicap.evaluate.sampling import ProbeData
from manicap.methods import find_method
from manicap.methods.base import Batch, Method, MethodContext
from manicap.train.config import PretrainConfig
from manicap.train.image_config import ImageConfig
from manicap.train.run_config import RunConfig
from manicap.train.setup import build_optimizer

MEASURED_STEPS = 3
LONG_SECONDS = 2.0
"""What takes longer is measured once, or in small."""
SMALL_BATCHES = (2, 8)
ENCODED_FRAMES = 64
PROBE_EPOCHS = 40
"""After which a linear probe of Atari is taken to have stopped."""
LOGISTIC_SAMPLE = 4
"""Measured iterations of a logistic probe, which is taken to need all it may."""
PROBE_ROWS, LINEAR_ROWS = 1024, 256
NUM_VARIABLES, NUM_VALUES = 12, 40
"""Of a typical game."""
PROBE_SHARE = 0.7
IMAGE_SIDES = {"cifar10": 32, "stl10": 96}
NUM_CLASSES = 10


@dataclass(frozen=True)
class Rates:
    """Seconds, for one kind of run."""

    step: float
    """A training step."""
    probes: float
    """All evaluations, the untrained floor included."""


def measure(cell: Cell, device: torch.device) -> Rates:
    config = cell.config
    method = build_unset(config, method_context(config), device)
    generator = torch.Generator().manual_seed(0)
    step = _step_seconds(method, config, device, generator) if method.is_trained else 0.0
    method.eval()
    probes = sum(_evaluation_seconds(method, config, cell.evaluations, device, generator))
    return Rates(step, 2 * probes)  # the untrained floor is encoded and probed alike


def build_unset(config: RunConfig, context: MethodContext, device: torch.device) -> Method:
    """The method with any weights of the usual size: orthogonal ones of large heads would take a minute to compute."""
    with torch.device("meta"):
        method = find_method(config.method)(config.settings, context)
    method.to_empty(device=device)
    generator = torch.Generator(device).manual_seed(0)
    for tensor in (*method.parameters(), *method.buffers()):
        bound = max(tensor[0].numel(), 1) ** -0.5 if tensor.ndim > 1 else 0.0
        if tensor.is_floating_point():
            tensor.data.uniform_(-bound, bound, generator=generator)
        else:
            tensor.data.zero_()
    for module in method.modules():
        if isinstance(module, torch.nn.modules.batchnorm._NormBase):
            module.reset_parameters()
    return method


def measure_emulator(game: str) -> float:
    """Seconds a step of one lane."""
    lane = Lane(find_game(game), 0, 0)
    lane.reset()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5:
        lane.step(lane.random_action())
        steps += 1
    return (time.perf_counter() - start) / steps


def method_context(config: RunConfig) -> MethodContext:
    if isinstance(config, PretrainConfig):
        return MethodContext(num_variables=NUM_VARIABLES)
    assert isinstance(config, ImageConfig)
    side = config.view_recipe.output_size or IMAGE_SIDES.get(config.dataset, 96)
    return MethodContext((3, side, side))


def _samples(method: Method, count: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Random frames, or random views."""
    shape = (*count, *method.context.input_shape)
    if method.domain == "images" and len(count) > 1:
        return torch.randn(shape, generator=generator)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def _step_seconds(method: Method, config: RunConfig, device: torch.device, generator: torch.Generator) -> float:
    """Of the whole batch; if that would take long, from two small ones: what grows with it, and what does not."""
    small, larger = SMALL_BATCHES
    few, more = (_seconds(_step(method, config, count, device, generator), device) for count in (small, larger))
    grows = max(0.0, more - few) / (larger - small)
    expected = few + grows * (config.batch_size - small)
    if expected > LONG_SECONDS:
        return expected
    return _seconds(_step(method, config, config.batch_size, device, generator), device)


def _step(
    method: Method, config: RunConfig, batch_size: int, device: torch.device, generator: torch.Generator
) -> Callable[[], None]:
    samples = _samples(method, (batch_size, method.frames_per_sample), generator).to(device)
    labels_BV = None
    if method.needs_labels:
        labels_BV = torch.randint(0, NUM_VALUES, (batch_size, NUM_VARIABLES), generator=generator).to(device)
    batch = Batch(samples, labels_BV, torch.Generator(device).manual_seed(0))
    optimizer = build_optimizer(method, config, device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(batch).total.backward()
        optimizer.step()

    return step


def _evaluation_seconds(
    method: Method, config: RunConfig, evaluations: Sequence[Any], device: torch.device, generator: torch.Generator
) -> Iterator[float]:
    """Of each; Atari features that an evaluation shares with one before are not encoded again."""
    encoded: set[tuple[Any, ...]] = set()
    frames = _samples(method, (ENCODED_FRAMES,), generator).to(device)
    for evaluation in evaluations:
        with torch.no_grad():
            width = method.represent(frames[:2], evaluation.probe_input).shape[1]
            call = partial(method.represent, frames, evaluation.probe_input)
            frame = _seconds(call, device) / len(frames)
        if isinstance(evaluation, EvaluationConfig):
            features = (evaluation.probe_input, evaluation.probe_steps, evaluation.protocol)
            new = 0 if features in encoded else evaluation.probe_steps
            encoded.add(features)
            yield new * frame + atari_probe_seconds(evaluation, evaluation.width or width)
        else:
            assert isinstance(config, ImageConfig)
            yield _image_evaluation_seconds(config, evaluation, frame, width, device)


def atari_probe_seconds(evaluation: EvaluationConfig, width: int) -> float:
    """Fitting one probe on the evaluation's training frames."""
    asked = {name: getattr(evaluation, name) for name in ("probe", "probe_steps", "protocol", "probe_init")}
    return _probe_seconds(EvaluationConfig(**asked), width)


@cache
def _probe_seconds(evaluation: EvaluationConfig, width: int) -> float:
    rows = LINEAR_ROWS if evaluation.probe == "linear" else PROBE_ROWS
    rng = np.random.default_rng(0)
    features = rng.random((rows, width), np.float32)
    labels = rng.integers(0, NUM_VALUES, (rows, NUM_VARIABLES), dtype=np.uint8)
    data = ProbeData(features, labels, np.arange(rows) // 64)
    more_rows = PROBE_SHARE * evaluation.probe_steps / rows
    if evaluation.probe == "linear":
        epochs = PROBE_EPOCHS * max(1, STEPS_AN_EPOCH // evaluation.probe_steps)
        return _linear_epoch_seconds(evaluation.protocol, evaluation.resolved_init, data) * epochs * more_rows
    if evaluation.probe == "knn":
        return _fit_seconds(NearestNeighbors(), data) * more_rows
    # Two fits tell the iterations from the eigenvectors, which are computed once, whatever the number of rows.
    few, many = (
        _fit_seconds(LogisticProbes(LogisticConfig(max_iterations=count)), data)
        for count in (LOGISTIC_SAMPLE, 3 * LOGISTIC_SAMPLE)
    )
    iteration = max(0.0, many - few) / (2 * LOGISTIC_SAMPLE)
    once = max(0.0, few - LOGISTIC_SAMPLE * iteration)
    return once + LogisticConfig.max_iterations * iteration * more_rows


def _linear_epoch_seconds(protocol: str, init: ProbeInit, data: ProbeData) -> float:
    return _fit_seconds(LinearProbes(LinearConfig(max_epochs=1, init=init), find_protocol(protocol)), data)


def _fit_seconds(probe: Probe, data: ProbeData) -> float:
    start = time.perf_counter()
    probe.fit(data, data).predict(data.features)
    return time.perf_counter() - start


def _image_evaluation_seconds(
    config: ImageConfig, evaluation: ImageEvaluationConfig, image: float, width: int, device: torch.device
) -> float:
    """Features once, or in every epoch; a step of the linear layer is measured."""
    _, train, test = count_images(config)
    train = min(train, config.num_images or train)
    if evaluation.probe != "linear":
        return (train + test) * image
    augmented = evaluation.probe_features == "augmented"
    augmented |= evaluation.probe_features == "auto" and evaluation.protocol == "tsai2021"
    features = torch.randn(evaluation.probe_batch_size, width, device=device)
    layer = torch.nn.Linear(width, NUM_CLASSES, device=device)
    labels = torch.zeros(len(features), dtype=torch.long, device=device)
    step = _seconds(lambda: F.cross_entropy(layer(features), labels).backward(), device)
    steps = evaluation.probe_epochs * train / evaluation.probe_batch_size
    return (train * (evaluation.probe_epochs if augmented else 1) + test) * image + steps * step


def count_images(config: ImageConfig) -> tuple[int, int, int]:
    known = NUM_IMAGES.get(config.dataset)
    if known is not None:
        return known
    counts = [len(list((Path(config.dataset) / split).glob("*/*"))) for split in ("train", "test")]
    return counts[0], counts[0], counts[1]


def _seconds(call: Callable[[], Any], device: torch.device) -> float:
    """The fastest of a few calls, of one if that takes long: what else the machine does only adds to them."""
    found: list[float] = []
    while len(found) < MEASURED_STEPS + 1 and sum(found) < LONG_SECONDS:
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append(time.perf_counter() - start)
    return min(found)
