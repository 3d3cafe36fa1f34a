"""Several cells at a time on this machine, each in a process of its own.

Each cell gets a fresh process: memory is returned, and a killed process affects only its own cell. The fork server has
torch already loaded, so starting one takes milliseconds.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from manicap.bench.cell import Job, Outcome, Work
from manicap.core.errors import Interruption, UserError


class _Running(NamedTuple):
    process: multiprocessing.process.BaseProcess
    answer: Connection
    job: Job


class ProcessExecutor:
    def __init__(self, num_workers: int) -> None:
        if num_workers < 1:
            raise UserError(f"workers must be at least 1, got {num_workers}")
        self.num_workers = num_workers

    def run(self, work: Work, jobs: Sequence[Job]) -> Iterator[Outcome]:
        waiting = deque(jobs)
        running: list[_Running] = []
        try:
            while waiting or running:
                while waiting and len(running) < self.num_workers:
                    running.append(_start(work, waiting.popleft()))
                # An answer too large for the pipe must be read before its sender can end.
                ready = wait([each for item in running for each in (item.answer, item.process.sentinel)])
                for item in [item for item in running if item.answer in ready or item.process.sentinel in ready]:
                    running.remove(item)
                    yield _outcome(item)
        finally:  # also when the caller is interrupted: running cells write a checkpoint and end
            for item in running:
                item.process.terminate()
            for item in running:
                item.process.join()


def _start(work: Work, job: Job) -> _Running:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["manicap.bench.cell"])
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, job, sending), name=job.cell.name)
    process.start()
    sending.close()
    return _Running(process, receiving, job)


def _child(work: Work, job: Job, answer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches the parent, which stops us with SIGTERM
    try:
        answer.send(work(job))
    except Interruption as interruption:
        raise SystemExit(interruption.exit_code) from None


def _outcome(item: _Running) -> Outcome:
    """What the process sent, or how it ended without sending anything."""
    try:
        # A killed process may have left others that hold its pipe open, so that end of file would never come.
        if not item.answer.poll():
            raise EOFError
        outcome: Outcome = item.answer.recv()
        item.process.join()
        return outcome
    except EOFError:
        item.process.join()
        code = item.process.exitcode
        cause = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
        return Outcome(item.job.cell.name, "lost", f"its worker {cause}")
    finally:
        item.answer.close()
