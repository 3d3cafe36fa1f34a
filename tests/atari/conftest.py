import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def start_manicap():
    """Starts `manicap ARGUMENTS` as its own process group with its messages readable line by line."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "manicap", *map(str, arguments)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A suite started in the background ignores SIGINT, and its children would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def child_pids(pid: int) -> list[int]:
    """Processes started by any thread of `pid`."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def wait_for_exit(pid: int, seconds: float = 30) -> bool:
    """Whether a process that is not our child ends in time."""
    import select

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
