"""Measurements during training that do not affect its result: `diagnostics.jsonl`, one line every k steps."""

import time
from collections.abc import Callable, Mapping

from manicap.algorithms.base import Batch, Method
from manicap.train.logs import LogFile

Observe = Callable[[Method, Batch], Mapping[str, float | str]]
"""Named numbers of the method on a batch, in evaluation mode; `alarm`, if present, is a sentence to print."""


class Observations:
    """The log of the measurements, one line every `every` steps."""

    def __init__(self, log: LogFile, every: int) -> None:
        self.log, self.every = log, every
        self.seconds, self.start = 0.0, time.monotonic()

    def is_due(self, step: int) -> bool:
        return step % self.every == 0

    def add(self, step: int, measured: Mapping[str, float | str], seconds: float) -> None:
        """Write a line, and add the time it took to measure."""
        self.seconds += seconds
        self.log.write({"step": step, **measured})

    def cost(self) -> str:
        """How long the measurements took since the file was opened."""
        percent = 100 * self.seconds / max(time.monotonic() - self.start, 1e-9)
        return f"diagnostics every {self.every} steps took {self.seconds:.1f} s, {percent:.1f} % of the training time"
