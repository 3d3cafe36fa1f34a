"""Which frames are labelled: nested subsets of the training frames, and the folds that choose a regularization.

With n labels everything is done with n labels: a probe's regularization is chosen by cross-validation among them, never
by further labels. Frames a few steps apart look alike, so a stretch of play is held out as a whole.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manicap.core.seeding import numpy_generator

Indices = NDArray[np.int64]

SMALLEST = 50
DRAWS, DRAWN_UP_TO = 5, 800
"""How often subsets are drawn, and the largest number of labels drawn more than once: larger ones differ little."""
STRETCH = 128
"""Successive frames of an episode that are in the same fold."""
FOLDS = 5


def label_counts(num_frames: int) -> tuple[int, ...]:
    """50, 100, 200, ..., up to half of all, and all.

    label_counts(1000)      # 50, 100, 200, 400, 1000
    """
    counts = []
    count = SMALLEST
    while count <= num_frames / 2:
        counts.append(count)
        count *= 2
    return (*counts, num_frames)


@dataclass(frozen=True)
class Draw:
    """An order in which the training frames are labelled; the first n are the subset of n."""

    order: Indices
    counts: tuple[int, ...]
    """Sizes of the subsets of this draw."""


def draw_subsets(num_frames: int, seed: int) -> tuple[Draw, ...]:
    """The first draw has all sizes, the others only the small ones."""
    counts = label_counts(num_frames)
    small = tuple(count for count in counts if count <= DRAWN_UP_TO and count < num_frames)
    orders = [numpy_generator(seed, "labels", draw).permutation(num_frames) for draw in range(DRAWS if small else 1)]
    return tuple(Draw(order, small if index else counts) for index, order in enumerate(orders))


def assign_folds(episodes: Indices, seed: int) -> Indices:
    """The fold of each frame [n], 0 to 4. Frames of an episode are adjacent. Too few stretches are not kept whole."""
    starts = np.flatnonzero(np.r_[True, episodes[1:] != episodes[:-1]])
    within = np.arange(len(episodes)) - np.repeat(starts, np.diff(np.r_[starts, len(episodes)]))
    begins_stretch = within % STRETCH == 0
    stretches = np.cumsum(begins_stretch) - 1
    if stretches[-1] + 1 < FOLDS:
        return np.arange(len(episodes)) % FOLDS
    folds = numpy_generator(seed, "folds").permutation(stretches[-1] + 1) % FOLDS
    return folds[stretches]
