"""Samples of consecutive frames of a store: which ones make an epoch, and their bytes."""

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.play.protocol import Protocol
from manicap.play.splits import Part, frame_pairs
from manicap.play.store import PlayStore, Rows
from manicap.play.views import GRAY, View, stacked_rows

BATCHES_AHEAD = 2
KEPT_BYTES = 2**30
"""Frames that are kept decoded: 30,000 gray ones."""


class DecodedOnce:
    """Single frames of a view, kept in memory once decoded: the first rows of a store, as many as there is room for.

    An epoch shows every frame twice, and decoding takes 3 % of a step of ST-DIM.
    """

    def __init__(self, store: PlayStore, view: View, room: int) -> None:
        self.store, self.view = store, replace(view, stack=1)
        shape = self.view.shape
        self._frames = np.empty((min(len(store), room // math.prod(shape)), *shape), np.uint8)  # empty pages are free
        self._is_kept = np.zeros(len(self._frames), np.bool_)

    def __getitem__(self, rows: Rows) -> NDArray[np.uint8]:
        """uint8 [..., C, H, W] for rows [...]."""
        within = rows < len(self._frames)
        new = np.unique(rows[within])
        new = new[~self._is_kept[new]]
        if len(new):
            self._frames[new] = self.view.read(self.store, new)
            self._is_kept[new] = True
        if within.all():
            return self._frames[rows]
        found = np.empty((*rows.shape, *self.view.shape), np.uint8)
        found[within] = self._frames[rows[within]]
        found[~within] = self.view.read(self.store, rows[~within])
        return found


class FrameSource:
    """Frames of a store by row, decoded as they are asked for or in advance, or on the device if they fit there."""

    def __init__(
        self,
        store: PlayStore,
        device: torch.device,
        view: View = GRAY,
        resident: bool = False,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.store, self.device, self.view = store, device, view
        self.on_device: Tensor | None = None
        if resident:  # single frames; they are stacked there
            chunks = replace(view, stack=1).chunks(store, np.arange(len(store)))
            self.on_device = torch.cat([torch.from_numpy(chunk).to(device) for chunk in chunks])
        self._decoded = DecodedOnce(store, view, 0 if resident else kept_bytes)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="frame source")
        self._ahead: dict[bytes, Future[Tensor]] = {}

    def prepare(self, rows: Rows) -> None:
        """Begin to decode what `take` will be asked for soon. What nobody asks for is forgotten."""
        if self.on_device is None:
            self._ahead[rows.tobytes()] = self._reader.submit(self._read, rows)
            if len(self._ahead) > BATCHES_AHEAD:
                self._ahead.pop(next(iter(self._ahead))).cancel()

    def take(self, rows: Rows) -> Tensor:
        """uint8 `[..., C, H, W]` for rows `[...]`, on the device."""
        if self.on_device is not None:
            wanted = torch.from_numpy(stacked_rows(self.store, rows, self.view.stack))
            return self.on_device[wanted.to(self.device)].flatten(-4, -3)
        ahead = self._ahead.pop(rows.tobytes(), None)
        frames = self._read(rows) if ahead is None else ahead.result()
        return frames.to(self.device, non_blocking=True)

    def _read(self, rows: Rows) -> Tensor:
        frames = torch.from_numpy(self._decoded[stacked_rows(self.store, rows, self.view.stack)]).flatten(-4, -3)
        return frames.pin_memory() if self.device.type == "cuda" else frames

    @staticmethod
    def fits(store: PlayStore, device: torch.device, view: View = GRAY) -> bool:
        """Whether all frames fit into half of a GPU's free memory."""
        if device.type != "cuda":
            return False
        free, _ = torch.cuda.mem_get_info(device)
        return len(store) * math.prod(replace(view, stack=1).shape) < free / 2


class FrameSamples:
    """The samples of a split: T consecutive frames of one life each, as rows of the store."""

    def __init__(self, store: PlayStore, part: Part, protocol: Protocol, frames_per_sample: int) -> None:
        self.frames_per_sample = T = frames_per_sample
        self.second: Rows | None = None
        if T == 2:
            self.first, self.second = frame_pairs(store, part, protocol)
        else:
            ends = store.episodes["start"][part.episodes] + store.episodes["length"][part.episodes]
            self.first = part.rows[part.rows + T <= ends]
        self.by_episode = protocol.sampling == "episodes"
        episode = np.searchsorted(store.episodes["start"], self.first, side="right")
        # Where the samples of each life begin, and where those of the last one end.
        self.bounds = np.append(np.unique(episode, return_index=True)[1], len(self.first))
        self.per_epoch = len(self.first) if T <= 2 else windows_per_epoch(len(self.bounds) - 1, len(part.rows), T)
        self.size = f"{self.per_epoch} samples of {T} frames"
        self.remedy = "collect more steps" if T <= 2 else "collect more steps, use shorter sequences"

    def rows(self, index: NDArray[np.int64]) -> Rows:
        """Rows `[B, T]` of the samples."""
        if self.second is not None:
            return np.stack([self.first[index], self.second[index]], 1)
        return self.first[index][:, None] + np.arange(self.frames_per_sample)

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Samples of one epoch: each equally often, or drawn by episode and then within it.

        If an epoch has fewer samples than there are, none occurs twice; if it has more, all occur equally often, give
        or take one.
        """
        if not self.by_episode:
            passes = math.ceil(self.per_epoch / len(self.first))
            return np.concatenate([rng.permutation(len(self.first)) for _ in range(passes)])[: self.per_epoch]
        episode = rng.integers(0, len(self.bounds) - 1, self.per_epoch)
        low, high = self.bounds[episode], self.bounds[episode + 1]
        return rng.integers(low, high)


def windows_per_epoch(num_lives: int, num_frames: int, frames_per_sample: int) -> int:
    """How many windows of T frames make an epoch: T for every life that is long enough, as the 2019 code draws them.

    At least enough to hold as many frames as there are. With its 100 frames this matters only for lives of more than
    10,000 steps; with short windows the 2019 count would leave most frames out of an epoch.
    """
    if not num_lives:
        return 0
    return max(num_lives * frames_per_sample, num_frames // frames_per_sample)
