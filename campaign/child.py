"""Inside a forked child: one call of the command line, watched and disturbed.

An audit hook sees every file that Python opens, renames or removes. It notes what is read, counts the changes of the
file system under the working directory, and strikes before a chosen one: so a kill, or a full disk, falls between two
given changes, and does so again whenever the trial is repeated.
"""

import contextlib
import io
import json
import os
import resource
import signal
import sys
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

MAX_MEMORY = 8 * 2**30
"""Bytes of address space: a malformed size must not take the machine's memory with it."""
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class Strike:
    """What is done to a call on its way. Changes are counted from 0."""

    kill_after: float | None = None
    """Seconds until the whole process group is killed."""
    kill_at: int | None = None
    """Kill it before this change of the file system."""
    fill_at: int | None = None
    """Fill the disk before this change."""
    leave_bytes: int = 0
    """What a filled disk has left; without a disk of its own, the largest file that may be written."""
    filler: Path | None = None
    """File that takes the room, on the disk of the working directory; None limits the size of files in its place."""


@dataclass(frozen=True)
class Request:
    """A call to be made."""

    words: tuple[str, ...]
    directory: Path
    """Working directory."""
    output: Path
    """Directory for stdout, stderr and trace.json."""
    limit: float = 60.0
    """Seconds after which it is asked to stop."""
    strike: Strike = Strike()
    encoding: str = "utf-8"
    """Of standard output and error, as a terminal would set it."""


class Watch:
    """The audit hook and what it has seen."""

    def __init__(self, directory: Path, strike: Strike) -> None:
        self.directory, self.strike = str(directory), strike
        self.changes = 0
        self.reads: dict[str, None] = {}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if (name := self._inside(path)) is None:
                return
            if flags & _WRITES:
                self._change()
            else:
                self.reads[name] = None
        elif event in _CHANGES and self._inside(arguments[0]) is not None:
            self._change()

    def _inside(self, path: Any) -> str | None:
        """The path as seen from the working directory; None if it leads elsewhere or is a file descriptor."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        full = os.path.join(self.directory, os.fsdecode(path))
        return os.path.relpath(full, self.directory) if full.startswith(self.directory + os.sep) else None

    def _change(self) -> None:
        number, self.changes = self.changes, self.changes + 1
        if number == self.strike.kill_at:
            os.killpg(0, signal.SIGKILL)
        if number == self.strike.fill_at:
            fill_disk(self.strike)


def fill_disk(strike: Strike) -> None:
    """Leave `leave_bytes` of room."""
    if strike.filler is None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (strike.leave_bytes, resource.RLIM_INFINITY))
        return
    status = os.statvfs(strike.filler.parent)
    room = status.f_bavail * status.f_frsize - strike.leave_bytes
    if room > 0:
        handle = os.open(strike.filler, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            os.posix_fallocate(handle, 0, room)
        os.close(handle)


def run_child(request: Request) -> NoReturn:
    """Make the call and end the process with its exit code, as the interpreter would."""
    code = 70
    try:
        _redirect(request)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        watch = Watch(request.directory, request.strike)
        sys.addaudithook(watch)
        code = _exit_code(request.words)
        trace = {"changes": watch.changes, "reads": list(watch.reads)}
        with contextlib.suppress(OSError):
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            (request.output / "trace.json").write_text(json.dumps(trace))
    finally:
        os._exit(code)


def _redirect(request: Request) -> None:
    os.chdir(request.directory)
    files = [Path(os.devnull), request.output / "stdout", request.output / "stderr"]
    for number, path in enumerate(files):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(handle, number)
        os.close(handle)
    # Set up as Python does: what stderr cannot encode is written as an escape.
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), request.encoding)
    raw = io.FileIO(2, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(raw, request.encoding, "backslashreplace", write_through=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit_code(words: tuple[str, ...]) -> int:
    from manicap.cli.main import main

    sys.argv = ["manicap", *words]
    sys.modules["__main__"] = types.ModuleType("__main__")  # worker processes would import the campaign's own
    try:
        main(list(words))
        sys.stdout.flush()
        return 0
    except SystemExit as end:
        sys.stdout.flush()
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
