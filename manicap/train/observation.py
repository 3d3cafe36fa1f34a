"""What is measured on the way, beside the run and no part of its result: `diagnostics.jsonl`, a line every k steps."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from manicap.core.files import atomic_write
from manicap.methods.base import Batch, Method

Observe = Callable[[Method, Batch], Mapping[str, float | str]]
"""Named numbers of the method on a batch, in evaluation mode; `alarm`, if there, is a sentence to be said."""


class Observations:
    """The file of a run, for a line every so many steps.

    Going on at a step, it forgets what a lost part of the run has written after it.
    """

    def __init__(self, path: Path, every: int, step: int) -> None:
        self.path, self.every = path, every
        self.seconds, self.start = 0.0, time.monotonic()
        lines = path.read_text().splitlines() if path.is_file() else []
        kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= step]
        if kept != lines:
            atomic_write(path, "".join(f"{line}\n" for line in kept).encode())

    def is_due(self, step: int) -> bool:
        return step % self.every == 0

    def add(self, step: int, measured: Mapping[str, float | str], seconds: float) -> None:
        """A line, and what it took to measure it."""
        self.seconds += seconds
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **measured}) + "\n")

    def cost(self) -> str:
        """What measuring has taken since the file was opened."""
        percent = 100 * self.seconds / max(time.monotonic() - self.start, 1e-9)
        return f"diagnostics every {self.every} steps took {self.seconds:.1f} s, {percent:.1f} % of the training time"
