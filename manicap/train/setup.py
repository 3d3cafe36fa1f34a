"""Everything a run needs before its first step: device, store, batches, model, optimizer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from manicap.atari.collect import collect
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import Part, Rows, entropy, pretrain_splits, read_labels
from manicap.atari.store import Store
from manicap.core.config import to_dict
from manicap.core.seeding import stream_seed
from manicap.methods import find_method
from manicap.methods.base import Batch, Method, MethodContext
from manicap.train.batches import Batches, FrameSource, Samples
from manicap.train.config import PretrainConfig
from manicap.train.device import DeviceName, Precision, choose_device, choose_precision, keep_freed_memory, set_threads
from manicap.train.distributed import Processes
from manicap.train.sinks import SinkName


@dataclass(frozen=True)
class Execution:
    """How a run is executed: what should not change its result, and is recorded where it may."""

    device: DeviceName = "auto"
    """auto takes a GPU if there is one."""
    precision: Precision = "auto"
    """auto: bfloat16 on a GPU, float32 on a CPU."""
    threads: int | None = None
    """CPU threads; all cores if absent. Results differ in the last bits between thread counts."""
    checkpoint_seconds: float = 60.0
    """Time between checkpoints; one is also written at the end, and on Ctrl-C or SIGTERM."""
    log_every: int = 20
    """Steps between lines of metrics.jsonl."""
    sinks: tuple[SinkName, ...] = ()
    """Log also to tensorboard or wandb."""
    force: bool = False
    """Resume although the config, thread count, device or torch version has changed."""
    quiet: bool = False
    """Say nothing on the way."""


@dataclass
class Setup:
    """A run, ready to train."""

    config: PretrainConfig
    execution: Execution
    processes: Processes
    device: torch.device
    dtype: torch.dtype
    source: FrameSource
    labels_NV: Tensor | None
    train_batches: Batches
    val_batches: Batches
    method: Method
    model: nn.Module
    """The method, wrapped for several processes where there are."""
    optimizer: torch.optim.Optimizer
    max_steps: int
    identity: dict[str, Any]
    """What the bytes of the result depend on; a checkpoint of another identity is refused."""

    def batch(self, rows: Rows, *noise_stream: str | int) -> Batch:
        """The frames (and labels) of `rows`, with a noise generator that depends on nothing but its name."""
        labels_BV = None
        if self.labels_NV is not None:
            labels_BV = self.labels_NV[torch.from_numpy(rows[:, 0])].long().to(self.device)
        seed = stream_seed(self.config.seed, "noise", self.processes.rank, *noise_stream)
        generator = torch.Generator(self.device).manual_seed(seed)
        return Batch(self.source.take(rows), labels_BV, generator)


def prepare(config: PretrainConfig, execution: Execution, data_dir: Path, processes: Processes) -> Setup:
    """Collect or open the store, split it, build the model."""
    device = choose_device(execution.device, processes.local_rank)
    dtype = choose_precision(execution.precision, device)
    threads = set_threads(execution.threads)
    if device.type == "cpu":
        keep_freed_memory()
    if processes.is_first:
        collect(config.store_config, data_dir, quiet=execution.quiet)
    processes.barrier()
    store = collect(config.store_config, data_dir, quiet=True)
    protocol = find_protocol(config.protocol)
    splits = pretrain_splits(store, protocol, config.seed)
    labels_NV = label_table(store, config) if find_method(config.method).needs_labels else None
    method = build_method(config, MethodContext(num_variables=0 if labels_NV is None else labels_NV.shape[1]))
    method.to(device)
    distributed = processes.world > 1 and method.is_trained

    def batches(part: Part) -> Batches:
        samples = Samples(store, part, protocol, method.frames_per_sample)
        return Batches(samples, config.batch_size, config.seed, part.name, processes.rank, processes.world)

    train_batches, val_batches = batches(splits.train), batches(splits.val)
    steps = config.max_epochs * train_batches.num_batches
    identity = {
        "config": to_dict(config),
        "store": store.fingerprint,
        "threads": threads,
        "torch": str(torch.__version__),
        "device": device.type,
        "precision": str(dtype),
        "processes": processes.world,
    }
    return Setup(
        config=config,
        execution=execution,
        processes=processes,
        device=device,
        dtype=dtype,
        source=FrameSource(store, device, resident=FrameSource.fits(store, device)),
        labels_NV=labels_NV,
        train_batches=train_batches,
        val_batches=val_batches,
        method=method,
        model=DistributedDataParallel(method) if distributed else method,
        optimizer=build_optimizer(method, config, device),
        max_steps=min(steps, config.max_steps or steps),
        identity=identity,
    )


def build_method(config: PretrainConfig, context: MethodContext) -> Method:
    """The method with its initial weights, which depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config.seed, "init"))
        return find_method(config.method)(config.settings, context)


def build_optimizer(method: Method, config: PretrainConfig, device: torch.device) -> torch.optim.Optimizer:
    fused = device.type in ("cpu", "cuda")
    return torch.optim.Adam(method.parameters(), lr=config.learning_rate, eps=config.adam_epsilon, fused=fused)


def label_table(store: Store, config: PretrainConfig) -> Tensor:
    """uint8 labels `[N, V]` of every row, for the variables that vary enough."""
    protocol = find_protocol(config.protocol)
    labels = read_labels(store, np.arange(len(store)), config.annotation_set, protocol)
    return torch.from_numpy(np.stack([x for x in labels.values() if entropy(x) >= protocol.min_entropy], 1))
