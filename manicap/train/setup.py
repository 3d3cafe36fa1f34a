"""Everything a run needs before its first step: device, data, batches, model, optimizer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from manicap import __version__
from manicap.algorithms import find_method
from manicap.algorithms.base import Method, MethodContext
from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.core.ranges import Count, NonNegative, Threads
from manicap.core.seeding import stream_seed
from manicap.domains.base import find_domain
from manicap.domains.run_config import RunConfig
from manicap.domains.samples import TrainingData
from manicap.nn.normalised_input import NormalisedInput
from manicap.train.batches import Batches
from manicap.train.device import (
    DeviceName,
    Precision,
    choose_device,
    choose_precision,
    keep_freed_memory,
    set_threads,
)
from manicap.train.distributed import Processes
from manicap.train.identity import processor_identity
from manicap.train.memory import require_memory
from manicap.train.sinks import SinkName

LOG_EVERY = 20


@dataclass(frozen=True)
class Execution:
    """How a run is executed: settings that should not change its result, recorded where they may."""

    device: DeviceName = "auto"
    """Device; auto uses a GPU if there is one."""
    precision: Precision = "auto"
    """Precision; auto is bfloat16 on a GPU and float32 on a CPU."""
    threads: Threads | None = None
    """CPU threads; OMP_NUM_THREADS or all cores if omitted. Results depend on the thread count in their last bits."""
    checkpoint_seconds: NonNegative = 60.0
    """Seconds between checkpoints; one is also written at the end, and on Ctrl-C or SIGTERM."""
    log_every: Count | None = None
    """Steps between lines of metrics.jsonl; if omitted, as when the run started, or 20."""
    diagnose_every: Count | None = None
    """Steps between lines of diagnostics.jsonl (rank, spread, heads); if omitted, as when the run started, or never."""
    sinks: tuple[SinkName, ...] = ()
    """Also log to tensorboard or wandb."""
    force: bool = False
    """Resume even if the config, thread count, processor or torch version has changed; not for finished runs."""
    quiet: bool = False
    """Show no progress."""


@dataclass
class Setup:
    """A run, ready to train."""

    config: RunConfig
    execution: Execution
    processes: Processes
    device: torch.device
    dtype: torch.dtype
    data: TrainingData
    train_batches: Batches
    val_batches: Batches | None
    """None if there is no validation split."""
    method: Method
    model: nn.Module
    """The method, wrapped if there are several processes."""
    optimizer: torch.optim.Optimizer
    max_steps: int
    identity: dict[str, Any]
    """What the exact bits of the result depend on; a checkpoint with a different identity is refused."""


def prepare(config: RunConfig, execution: Execution, data_dir: Path, processes: Processes) -> Setup:
    """Open the data, collecting it if necessary, split it, and build the model."""
    device = choose_device(execution.device, processes.local_rank)
    dtype = choose_precision(execution.precision, device)
    threads = set_threads(execution.threads)
    if device.type == "cpu":
        keep_freed_memory()
    domain = find_domain(config.domain)
    if processes.is_first:  # alone, before the others
        domain.prepare(config, (), data_dir, None, execution.quiet)
    processes.barrier()
    data = domain.open_training(config, data_dir, device, processes.rank)
    method = build_method(config, data.context)
    if isinstance(method.encoder, NormalisedInput) and data.context.pixel_statistics is None:
        raise UserError(f"{domain.title} give no statistics of pixels; use --input scaled")
    method.to(device)
    distributed = processes.world > 1 and method.is_trained
    prepare = getattr(data, "prepare", None)
    batches = {
        name: Batches(samples, config.batch_size, config.seed, name, processes.rank, processes.world, prepare)
        for name, samples in data.splits(method.frames_per_sample).items()
    }
    identity = {
        "config": to_dict(config),
        "data": data.fingerprint,
        "threads": threads,
        "manicap": __version__,
        "torch": str(torch.__version__),
        "device": device.type,
        **processor_identity(device),
        "precision": str(dtype),
        "processes": processes.world,
    }
    return Setup(
        config=config,
        execution=execution,
        processes=processes,
        device=device,
        dtype=dtype,
        data=data,
        train_batches=batches["train"],
        val_batches=batches.get("val"),
        method=method,
        model=DistributedDataParallel(method) if distributed else method,
        optimizer=build_optimizer(method, config, device),
        max_steps=count_steps(config, batches["train"].samples.per_epoch),
        identity=identity,
    )


def count_steps(config: RunConfig, samples_per_epoch: int) -> int:
    """Training steps that the budgets allow; patience may end a run sooner."""
    steps = config.max_epochs * (samples_per_epoch // config.batch_size)
    return min(steps, config.max_steps or steps)


def build_method(config: RunConfig, context: MethodContext) -> Method:
    """The method with its initial weights, which depend only on the seed."""
    require_memory(config, context)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "init"))
        return find_method(config.method)(config.settings, context)


def build_optimizer(method: Method, config: RunConfig, device: torch.device) -> torch.optim.Optimizer:
    parameters = [parameter for parameter in method.parameters() if parameter.requires_grad]
    return torch.optim.Adam(
        parameters,
        lr=config.learning_rate,
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay or 0.0,
        fused=device.type in ("cpu", "cuda"),
    )
