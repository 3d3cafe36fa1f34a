"""Progress of long tasks: on a terminal a bar with rate and time left, otherwise a plain line every 10 %."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Tracker:
    """`with Tracker("collecting pong", total=1000, unit="steps") as tracker: tracker.advance(10)`. Writes to stderr."""

    def __init__(self, title: str, total: int, unit: str = "steps", quiet: bool = False, start: int = 0) -> None:
        """`start` is what was done before (resumed work): it counts as done, but not in the rate."""
        self.title, self.total, self.unit, self.quiet = title, total, unit, quiet
        self.done = start
        self._detail = ""
        self._bar: Progress | None = None
        self._next_line = 0.1
        self._start = time.monotonic()
        self._done_at_start = start
        while start and start >= self._next_line * total:
            self._next_line += 0.1

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        if not self.quiet and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                _Rate(self.unit),
                TimeRemainingColumn(),
                TextColumn("{task.fields[detail]}", markup=False),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, completed=self.done, detail="")
        return self

    def advance(self, amount: int = 1, detail: str | None = None) -> None:
        self.done += amount
        if detail is not None:
            self._detail = detail
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, detail=self._detail)
        elif not self.quiet and self.total and self.done >= self._next_line * self.total:
            while self.done >= self._next_line * self.total:
                self._next_line += 0.1
            self._print_line()

    def say(self, line: str) -> None:
        """Print a line above the bar, or on its own."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def _print_line(self) -> None:
        elapsed = max(time.monotonic() - self._start, 1e-9)
        rate = max((self.done - self._done_at_start) / elapsed, 1e-9)
        left = (self.total - self.done) / rate
        detail = f", {self._detail}" if self._detail else ""
        self.say(
            f"{self.title}: {self.done}/{self.total} {self.unit} ({100 * self.done // self.total}%), "
            f"{rate:.3g} {self.unit}/s, {left:.0f} s left{detail}"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        self.unit = unit
        super().__init__()

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} {self.unit}/s" if task.speed else "")
