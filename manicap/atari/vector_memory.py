"""What the processes of a vector environment share: one block of memory without a name, seen as arrays.

The block belongs to a file descriptor that workers inherit. It vanishes with the last process that has it open, however
that process ends.
"""

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import RAM_SIZE

ALIGNMENT = 64
"""Bytes: every array begins in a cache line of its own."""
GOES_ON, LIFE_LOST, GAME_OVER, TRUNCATED = range(4)
"""How a step ended."""


@dataclass(frozen=True)
class VectorMemory:
    """The state of all environments; the first axis is the environment."""

    actions: NDArray[np.int64]
    seed: NDArray[np.int64]
    """[1]: what a reset seeds all lanes by; negative to play on with the seeds they have."""
    observations: NDArray[np.uint8]
    """[N, C, H, W]"""
    final_observations: NDArray[np.uint8]
    """The same of the step that ended an episode."""
    ram: NDArray[np.uint8]
    """[N, 128]"""
    final_ram: NDArray[np.uint8]
    rewards: NDArray[np.int64]
    endings: NDArray[np.int64]
    lives: NDArray[np.int64]

    @classmethod
    def on(cls, handle: int, num_envs: int, frame: tuple[int, int, int]) -> "VectorMemory":
        """The arrays in the memory behind a file descriptor, which is made as large as they are."""
        layout = _layout(num_envs, frame)
        sizes = [_padded(int(np.prod(shape)) * np.dtype(dtype).itemsize) for shape, dtype in layout.values()]
        if os.fstat(handle).st_size < sum(sizes):
            os.ftruncate(handle, sum(sizes))
        block, starts = mmap.mmap(handle, sum(sizes)), np.cumsum([0, *sizes[:-1]])
        arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(block, dtype, int(np.prod(shape)), int(start)).reshape(shape)
            for (name, (shape, dtype)), start in zip(layout.items(), starts, strict=True)
        }
        return cls(**arrays)


def anonymous_file() -> int:
    """A descriptor of an empty file in memory (where the system has none, of a temporary file)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("manicap")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _layout(num_envs: int, frame: tuple[int, int, int]) -> dict[str, tuple[tuple[int, ...], type]]:
    N = num_envs
    return {
        "actions": ((N,), np.int64),
        "seed": ((1,), np.int64),
        "observations": ((N, *frame), np.uint8),
        "final_observations": ((N, *frame), np.uint8),
        "ram": ((N, RAM_SIZE), np.uint8),
        "final_ram": ((N, RAM_SIZE), np.uint8),
        "rewards": ((N,), np.int64),
        "endings": ((N,), np.int64),
        "lives": ((N,), np.int64),
    }


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
