"""Which frames a probe sees in an epoch: every frame once, or frames of drawn episodes, depending on the protocol."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator
from manicap.domains.evaluation import TargetKind
from manicap.play.protocol import Protocol
from manicap.probing.metrics import Labels

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class ProbeData:
    """One split, ready for a probe: frozen features and the labels of all variables."""

    features: NDArray[np.float32]
    """[n, F]; may be memory-mapped."""
    labels: Labels
    """[n, V], whole numbers from 0."""
    episodes: Indices
    """[n]: the episode of each row; rows of an episode are adjacent."""
    kinds: tuple[TargetKind, ...] = ()
    """Of each variable; if empty, all are numbers."""
    values: NDArray[np.float64] | None = None
    """[n, V]: what places and numbers are in their own units, where labels are bins or counted from another 0."""

    def __post_init__(self) -> None:
        shapes = (self.features.shape, self.labels.shape, self.episodes.shape)
        if [len(shape) for shape in shapes] != [2, 2, 1] or len({shape[0] for shape in shapes}) != 1:
            raise ValueError(f"ProbeData requires features [n, F], labels [n, V] and episodes [n], got {shapes}")

    def __len__(self) -> int:
        return len(self.labels)


def epoch_order(data: ProbeData, protocol: Protocol, generator: np.random.Generator) -> Indices:
    """Row indices [n] of one epoch.

    `fixed`: a permutation. `reference`: n draws of an episode, with replacement and all equally likely, each followed
    by a uniform draw of one of its frames.
    """
    if protocol.sampling == "frames":
        return generator.permutation(len(data))
    _, starts, lengths = np.unique(data.episodes, return_index=True, return_counts=True)
    drawn = generator.integers(len(starts), size=len(data))
    return starts[drawn] + generator.integers(lengths[drawn])


def training_batches(data: ProbeData, protocol: Protocol, batch_size: int, seed: int, epoch: int) -> Iterator[Indices]:
    """Row indices of each batch of an epoch. `reference` drops the last batch if it is not full."""
    order = epoch_order(data, protocol, numpy_generator(seed, "probe", "train", epoch))
    stop = len(order) if protocol.sampling == "frames" else whole_batches(len(order), batch_size, "training")
    for start in range(0, stop, batch_size):
        yield order[start : min(start + batch_size, stop)]


def scored_rows(data: ProbeData, protocol: Protocol, batch_size: int, seed: int, name: str, epoch: int = 0) -> Indices:
    """Row indices for scoring validation or test: all of them once, or a sample drawn as in training."""
    if protocol.test_frames == "all":
        return np.arange(len(data))
    order = epoch_order(data, protocol, numpy_generator(seed, "probe", name, epoch))
    return order[: whole_batches(len(order), batch_size, name)]


def whole_batches(num_frames: int, batch_size: int, name: str) -> int:
    kept = num_frames - num_frames % batch_size
    if not kept:
        raise UserError(
            f"the reference protocol requires at least one full batch of {batch_size} {name} frames, got {num_frames};"
            " collect more steps"
        )
    return kept
