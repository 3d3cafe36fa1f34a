"""SIGTERM as an interruption: a command stops with one sentence and the exit code that shells expect."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from manicap.core.errors import Interruption


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM raises an `Interruption`, as Ctrl-C raises `KeyboardInterrupt`. Runs leave a checkpoint."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interruption(number, "stopped by SIGTERM; rerun the command to resume")

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
