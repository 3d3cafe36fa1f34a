"""Frames of a store, as training data."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from manicap.algorithms import find_method
from manicap.algorithms.base import Batch, MethodContext
from manicap.algorithms.supervised import NUM_CLASSES
from manicap.core.errors import UserError
from manicap.domains.play.config import PlayConfig
from manicap.domains.play.samples import FrameSamples, FrameSource
from manicap.domains.samples import SampleOrder
from manicap.play.protocol import find_protocol
from manicap.play.splits import entropy, pretrain_splits, read_labels
from manicap.play.store import PlayStore, Rows
from manicap.play.views import View
from manicap.train.device import noise_generator

STATISTICS_FRAMES = 2000
"""Frames, evenly spaced, from which the mean frame and the deviation of its pixels are taken."""


class StoreData:
    """Consecutive frames of a store, and labels for the methods that require them."""

    def __init__(
        self, config: PlayConfig, store: PlayStore, device: torch.device, rank: int = 0, view: View | None = None
    ) -> None:
        """`view` is what the encoder sees of this store; the config's, if omitted."""
        self.config, self.store, self.device, self.rank = config, store, device, rank
        self.protocol = find_protocol(config.protocol)
        self.view = view = config.view if view is None else view
        self.source = FrameSource(store, device, view, resident=FrameSource.fits(store, device, view))
        self.labels_NV = self._label_table() if find_method(config.method).needs_labels else None
        num_variables = 0 if self.labels_NV is None else self.labels_NV.shape[1]
        self.context = MethodContext(view.shape, num_variables, pixel_statistics=self._pixel_statistics())
        self.fingerprint = store.fingerprint

    def _pixel_statistics(self) -> tuple[Tensor, Tensor] | None:
        """Mean and deviation of every pixel in [0, 1], from frames of the training split, if the method asks."""
        if not getattr(self.config.settings, "needs_pixel_statistics", False):
            return None
        rows = pretrain_splits(self.store, self.protocol, self.config.seed).train.rows
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), STATISTICS_FRAMES)).astype(np.int64)]
        sums = squares = torch.zeros(())
        for chunk in self.view.chunks(self.store, rows):
            pixels = torch.from_numpy(chunk).double() / 255
            sums, squares = sums + pixels.sum(0), squares + pixels.square().sum(0)
        mean, square = sums / len(rows), squares / len(rows)
        return mean.float(), (square - mean.square()).clamp_min(0).sqrt().float()

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        found = pretrain_splits(self.store, self.protocol, self.config.seed)
        parts = {"train": found.train, "val": found.val}
        return {name: FrameSamples(self.store, part, self.protocol, frames_per_sample) for name, part in parts.items()}

    def prepare(self, rows: Rows) -> None:
        """Read ahead for a GPU. On a CPU the step needs all cores, and a thread that takes one from it costs more than
        decoding between steps (4 % of a step of ST-DIM against 3)."""
        if self.device.type != "cpu":
            self.source.prepare(rows)

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        labels_BV = None
        if self.labels_NV is not None:
            labels_BV = self.labels_NV[torch.from_numpy(rows[:, 0])].long().to(self.device)
        noise = noise_generator(self.config.seed, self.device, self.rank, *stream)
        return Batch(self.source.take(rows), labels_BV, noise)

    def _label_table(self) -> Tensor:
        """Labels `[N, V]` of every row, for the variables that vary enough."""
        labels = read_labels(self.store, np.arange(len(self.store)), self.config.annotation_set, self.protocol)
        least = self.protocol.min_entropy
        enough = {name: column for name, column in labels.items() if entropy(column) >= least}
        if not enough:
            raise UserError(
                f"no variable of {self.config.annotation_set} varies enough in {self.store.path} for"
                f" {self.config.method} (all below {least} nats: {', '.join(labels)}); collect more steps (now"
                f" {len(self.store)}), or give labels that vary"
            )
        for name, column in enough.items():
            if int(column.max()) >= NUM_CLASSES:
                raise UserError(
                    f"{self.config.method} tells {NUM_CLASSES} values of a variable apart, and {name} has"
                    f" {int(column.max()) + 1}: record it as a real number, which is put into bins"
                )
        return torch.from_numpy(np.stack(list(enough.values()), 1))
