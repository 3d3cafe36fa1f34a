"""What a run trains on, behind one small interface: the frames of a store here, images in `image_data`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from manicap.atari.collect import collect
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import Rows, entropy, pretrain_splits, read_labels
from manicap.atari.store import Store
from manicap.methods import find_method
from manicap.methods.base import Batch, MethodContext
from manicap.train.batches import FrameSource, SampleOrder, Samples
from manicap.train.config import PretrainConfig
from manicap.train.device import noise_generator
from manicap.train.distributed import Processes


class TrainingData(Protocol):
    """What the loop asks of its data."""

    context: MethodContext
    """What a method must know before it is built."""
    identity: dict[str, str]
    """Names the bytes that are trained on; part of every checkpoint."""

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        """The samples of `train` and, where the loop shall validate, of `val`."""
        ...

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        """The samples of `rows`. What is drawn depends on the seed and the stream's name (of the step) alone."""
        ...


class StoreData:
    """Consecutive frames of a store, and labels for the methods that need them."""

    def __init__(self, config: PretrainConfig, store: Store, device: torch.device, rank: int = 0) -> None:
        self.config, self.store, self.device, self.rank = config, store, device, rank
        self.protocol = find_protocol(config.protocol)
        self.source = FrameSource(store, device, resident=FrameSource.fits(store, device))
        self.labels_NV = self._label_table() if find_method(config.method).needs_labels else None
        self.context = MethodContext(num_variables=0 if self.labels_NV is None else self.labels_NV.shape[1])
        self.identity = {"store": store.fingerprint}

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        found = pretrain_splits(self.store, self.protocol, self.config.seed)
        parts = {"train": found.train, "val": found.val}
        return {name: Samples(self.store, part, self.protocol, frames_per_sample) for name, part in parts.items()}

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        labels_BV = None
        if self.labels_NV is not None:
            labels_BV = self.labels_NV[torch.from_numpy(rows[:, 0])].long().to(self.device)
        noise = noise_generator(self.config.seed, self.device, self.rank, *stream)
        return Batch(self.source.take(rows), labels_BV, noise)

    def _label_table(self) -> Tensor:
        """uint8 labels `[N, V]` of every row, for the variables that vary enough."""
        labels = read_labels(self.store, np.arange(len(self.store)), self.config.annotation_set, self.protocol)
        enough = [column for column in labels.values() if entropy(column) >= self.protocol.min_entropy]
        return torch.from_numpy(np.stack(enough, 1))


def open_store_data(
    config: PretrainConfig, data_dir: Path, device: torch.device, processes: Processes, quiet: bool
) -> StoreData:
    """Collect the store, the first process alone and before the others, or open it."""
    if processes.is_first:
        collect(config.store_config, data_dir, quiet=quiet)
    processes.barrier()
    return StoreData(config, collect(config.store_config, data_dir, quiet=True), device, processes.rank)
