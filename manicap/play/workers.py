"""Lanes of play in parallel processes, each fed the next lane by a thread; the first failure ends all of them.

A worker reads lane numbers from standard input, one per line. For each it prints the number of rows it has written,
again and again, then `done`; or `error ERRNO REASON` if the system refused something; or `mistake SENTENCE` (in JSON)
if the user made one.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from manicap.core.errors import Failure, UserError

Report = Callable[[int], None]


class LaneDied(Failure):
    """A lane could not be completed because its process ended."""

    def __init__(self, lane: int, cause: str) -> None:
        super().__init__(f"lane {lane} {cause}")
        self.lane, self.cause = lane, cause


def play_in_processes(module: str, job: Any, lanes: Iterable[int], num_workers: int, report: Report) -> None:
    """Have `python -m module '<job as JSON>'` play the lanes; `report` is called with rows as they are written."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for lane in lanes:
        waiting.put(lane)
    guard = threading.Lock()

    def report_alone(rows: int) -> None:
        with guard:
            report(rows)

    workers = [_Worker(module, job) for _ in range(min(num_workers, waiting.qsize()))]
    if not workers:
        return
    pool = ThreadPoolExecutor(len(workers))
    try:
        futures = [pool.submit(worker.play_all, waiting, report_alone) for worker in workers]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    finally:
        for worker in workers:
            worker.process.kill()
        pool.shutdown(wait=True)
        for worker in workers:
            worker.close()


class _Worker:
    """A process and the conversation with it."""

    def __init__(self, module: str, job: Any) -> None:
        # -P: a user's file that is named like a module, in the current directory, must not be imported.
        command = [sys.executable, "-P", "-m", module, json.dumps(job)]
        pipe = subprocess.PIPE
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace", bufsize=1, env=one_thread
        )
        assert self.process.stderr is not None
        self._complaints: deque[str] = deque(maxlen=1)
        # Read all the time: a pipe that is full would stop the worker.
        self._listener = threading.Thread(target=self._complaints.extend, args=(self.process.stderr,), daemon=True)
        self._listener.start()

    def play_all(self, lanes: "queue.SimpleQueue[int]", report: Report) -> None:
        while True:
            try:
                lane = lanes.get_nowait()
            except queue.Empty:
                return
            self._play(lane, report)

    def close(self) -> None:
        self.process.wait()
        self._listener.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _play(self, lane: int, report: Report) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # a dead worker is explained below
            self.process.stdin.write(f"{lane}\n")
        for line in self.process.stdout:
            match line.split(" ", 2):
                case ["done\n"]:
                    return
                case ["mistake", *_]:
                    raise UserError(json.loads(line.removeprefix("mistake ")))
                case ["error", number, reason]:
                    raise OSError(int(number), f"lane {lane}: {reason.strip()}")
                case [rows]:
                    report(int(rows))
        code = self.process.wait()
        self._listener.join()
        cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        raise LaneDied(lane, cause + "".join(f" ({line.strip()})" for line in self._complaints))
