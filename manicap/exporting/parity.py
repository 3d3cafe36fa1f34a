"""Does an exported encoder compute what the module computes, and how fast?"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from manicap.core.errors import Failure
from manicap.exporting.formats import Features, Frames

BATCHES = (1, 64)
"""Sizes of the first batch and of the others, because an export has no fixed batch size."""
TOLERANCE, OUTLIERS = 1e-3, 0.01
"""A frame differs if a feature is off by more than this, relative to the largest feature. A rounding error
may decide which chart is chosen, so one frame in a hundred may differ."""
ROUNDS = 5

Encode = Callable[[Frames], Features]


@dataclass(frozen=True)
class Parity:
    num_frames: int
    max_difference: float
    """Of any feature of any frame."""
    largest: float
    """The largest absolute feature, for comparison."""


def encode_in_batches(encode: Encode, frames: Frames) -> Features:
    first, size = BATCHES
    starts = [0, *range(first, len(frames), size)]
    stops = [*starts[1:], len(frames)]
    return np.concatenate([encode(frames[start:stop]) for start, stop in zip(starts, stops, strict=True)])


def check_parity(expected: Features, found: Features, what: str) -> Parity:
    """Raise a `Failure` if the features are not the same up to rounding."""
    if found.shape != expected.shape:
        raise Failure(f"{what} returns features {list(found.shape)}, the module {list(expected.shape)}")
    differences = np.abs(found - expected).max(1)
    largest = float(np.abs(expected).max())
    share = float((differences > TOLERANCE * max(largest, 1e-12)).mean())
    if share > OUTLIERS or not np.isfinite(found).all():
        raise Failure(
            f"{what} does not compute what the module computes: {100 * share:.1f} % of {len(found):,} frames have"
            f" features that differ by more than {TOLERANCE:g} of the largest"
        )
    return Parity(len(expected), float(differences.max()), largest)


def frames_per_second(
    calls: Mapping[str, Encode],
    frames: Frames,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The best of several rounds. Calls take turns, so that other load on the machine affects all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            start = clock()
            call(frames)
            seconds[name].append(clock() - start)
    return {name: len(frames) / min(times[1:]) for name, times in seconds.items()}  # the first round warms up
