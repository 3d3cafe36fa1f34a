"""Seconds of a few measured steps: training, encoding and probing, for one kind of run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from manicap.algorithms import find_method
from manicap.algorithms.base import Batch, Method, MethodContext
from manicap.bench.grid import Cell
from manicap.domains.base import find_domain
from manicap.domains.run_config import RunConfig
from manicap.train.setup import build_optimizer

MEASURED_STEPS = 3
LONG_SECONDS = 2.0
"""Whatever takes longer is measured once, or at a smaller size."""
SMALL_BATCHES = (2, 8)
ENCODED_SAMPLES = 64
NUM_VALUES = 40
"""Values of a label, for methods that learn from labels."""


@dataclass(frozen=True)
class Rates:
    """Seconds for one kind of run."""

    step: float
    """A training step."""
    probes: float
    """All evaluations, including the untrained floor."""


def measure(cell: Cell, device: torch.device) -> Rates:
    config = cell.config
    method = build_unset(config, find_domain(config.domain).context(config), device)
    generator = torch.Generator().manual_seed(0)
    step = _step_seconds(method, config, device, generator) if method.is_trained else 0.0
    method.eval()
    probes = sum(_evaluation_seconds(method, cell, device, generator))
    return Rates(step, 2 * probes)  # the untrained floor is encoded and probed too


def build_unset(config: RunConfig, context: MethodContext, device: torch.device) -> Method:
    """The method with arbitrary weights of typical size: orthogonal ones for large heads would take a minute."""
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


def _samples(method: Method, count: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Random frames, or random views."""
    shape = (*count, *method.context.input_shape)
    if method.kind == "views" and len(count) > 1:
        return torch.randn(shape, generator=generator)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def _step_seconds(method: Method, config: RunConfig, device: torch.device, generator: torch.Generator) -> float:
    """Seconds per step: of the whole batch or, if that takes long, extrapolated from two small ones."""
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
        labels_BV = torch.randint(0, NUM_VALUES, (batch_size, method.context.num_variables), generator=generator).to(
            device
        )
    batch = Batch(samples, labels_BV, torch.Generator(device).manual_seed(0))
    optimizer = build_optimizer(method, config, device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        method.loss(batch).total.backward()
        optimizer.step()

    return step


def _evaluation_seconds(
    method: Method, cell: Cell, device: torch.device, generator: torch.Generator
) -> Iterator[float]:
    """Seconds of each evaluation; features shared with an earlier one are not encoded again."""
    encoded: set[str] = set()
    samples = _samples(method, (ENCODED_SAMPLES,), generator).to(device)
    for evaluation in cell.evaluations:
        with torch.no_grad():
            width = method.represent(samples[:2], evaluation.probe_input).shape[1]
            call = partial(method.represent, samples, evaluation.probe_input)
            sample_seconds = _seconds(call, device) / len(samples)
        cost = find_domain(cell.config.domain).probe_cost(cell.config, evaluation)
        new = 0 if cost.features in encoded else cost.num_encoded
        encoded.add(cost.features)
        yield new * sample_seconds + cost.fit_seconds(width)


def _seconds(call: Callable[[], Any], device: torch.device) -> float:
    """The fastest of a few calls, or of one if that takes long: other load on the machine only adds time."""
    found: list[float] = []
    while len(found) < MEASURED_STEPS + 1 and sum(found) < LONG_SECONDS:
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append(time.perf_counter() - start)
    return min(found)
