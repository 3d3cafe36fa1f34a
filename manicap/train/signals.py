"""Ctrl-C and SIGTERM, recorded and acted on between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from manicap.core.errors import Interruption


def interruption(number: int, step: int) -> Interruption:
    name = signal.Signals(number).name
    return Interruption(
        number, f"stopped by {name} after step {step}; a checkpoint was written, rerun the command to resume"
    )


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """SIGINT and SIGTERM as numbers in a list, checked after each step. A second SIGINT interrupts at once."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread can set handlers
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
