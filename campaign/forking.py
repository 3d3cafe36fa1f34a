"""A process with everything imported that forks a child for each call: torch is loaded once, not for every trial."""

import contextlib
import ctypes
import json
import multiprocessing
import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Self

from campaign.child import Request, run_child

GRACE = 20.0
"""Seconds that a call has to end after SIGTERM."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_UNLOADED = ("manicap.__main__", "manicap.rl")
"""Modules that run when imported, or need an extra that may be missing."""


@dataclass(frozen=True)
class Ended:
    """How a call ended."""

    code: int
    """Exit code; negative for a signal."""
    seconds: float
    was_killed: bool = False
    """By us, as asked."""
    was_stopped: bool = False
    """By SIGTERM, because it took longer than its limit."""
    hung: bool = False
    """And did not follow."""
    changes: int = 0
    """Changes of the file system, if it came to its end."""
    reads: tuple[str, ...] = ()
    """Files opened for reading, as seen from its working directory."""
    stdout: str = ""
    stderr: str = ""


class ForkServer:
    """`with ForkServer() as server: server.call(Request(...))`. To be started before any thread."""

    def __init__(self) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._ours.close()
            try:
                _serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._is_open = True

    def call(self, request: Request) -> Ended:
        request.output.mkdir(parents=True, exist_ok=True)
        self._ours.send(request)
        ended = self._ours.recv()  # EOFError if the server was closed meanwhile
        assert isinstance(ended, Ended)
        return ended

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        os.kill(self._pid, signal.SIGKILL)  # its child dies with it
        os.waitpid(self._pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_everything() -> None:
    """Import what any command may need, with one thread, so that a forked child has it all."""
    import manicap

    for module in walk_packages(manicap.__path__, "manicap."):
        if not module.name.startswith(_UNLOADED):
            import_module(module.name)
    for name in (
        "PIL.Image",
        "PIL.PngImagePlugin",
        "PIL.JpegImagePlugin",
        "matplotlib.backends.backend_pdf",
        "matplotlib.backends.backend_svg",
        "gudhi",
        "torch._dynamo",
    ):
        try:
            import_module(name)
        except ImportError:
            continue  # an extra: its absence is the product's to explain


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the campaign's
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    prctl(_SET_CHILD_SUBREAPER, 1)  # orphans of a killed call come to us, so that we know when all are gone
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"a fork server must not have threads, this one has {threads}"
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_run(request))


def _run(request: Request) -> Ended:
    for name in ("stdout", "stderr", "trace.json"):
        (request.output / name).unlink(missing_ok=True)
    start = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        run_child(request)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)  # here too: whoever comes first
    was_killed = was_stopped = hung = False
    handle = os.pidfd_open(pid)
    try:
        strike = request.strike
        if strike.kill_after is not None and not _ends_within(handle, strike.kill_after):
            was_killed = True
        elif not _ends_within(handle, request.limit):
            was_stopped = True
            os.kill(pid, signal.SIGTERM)
            hung = not _ends_within(handle, GRACE)
    finally:
        os.close(handle)
    code = _end_group(pid)
    seconds = time.monotonic() - start
    was_killed = (was_killed or strike.kill_at is not None) and code == -signal.SIGKILL
    trace = _read_trace(request.output)
    return Ended(
        code,
        seconds,
        was_killed,
        was_stopped,
        hung,
        **trace,
        stdout=_read_text(request.output / "stdout"),
        stderr=_read_text(request.output / "stderr"),
    )


def _ends_within(handle: int, seconds: float) -> bool:
    return bool(select.select([handle], [], [], seconds)[0])


def _end_group(pid: int) -> int:
    """Kill what is left of the call's process group and wait for all of it; the exit code of the call itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # an ended process keeps its code until it is waited for
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-pid, 0)
    return os.waitstatus_to_exitcode(status)


def _read_trace(output: Path) -> dict[str, Any]:
    try:
        trace = json.loads((output / "trace.json").read_text())
    except FileNotFoundError:
        return {}
    return {"changes": trace["changes"], "reads": tuple(trace["reads"])}


def _read_text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.exists() else ""
