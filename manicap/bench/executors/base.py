"""The common interface of executors, and the loop around it: what is left, what is retried, what is given up.

    for outcome in executor.run(work, jobs): ...

An executor computes jobs in any order and yields an outcome for each; a failing job never makes it raise.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from manicap.bench.cell import Job, Outcome, Work, damage_notes, is_current, with_wait, write_error
from manicap.bench.grid import Grid
from manicap.core.errors import UserError
from manicap.core.registry import allowed_plugins
from manicap.core.remote import portable
from manicap.core.signals import stopped_by_sigterm
from manicap.train.setup import Execution

MAX_LOSSES = 20
"""A lost worker is not its cell's fault, but a cell that crashes its worker every time must be given up eventually."""


class Executor(Protocol):
    @property
    def num_workers(self) -> int | None:
        """Number of jobs computed at a time, by which the cores are divided; None if the machines decide."""

    def run(self, work: Work, jobs: Sequence[Job]) -> Iterator[Outcome]: ...


@dataclass(frozen=True)
class Summary:
    """What a call did."""

    done_before: int
    done: int
    failed: tuple[Outcome, ...]


def run_grid(
    grid: Grid,
    executor: Executor,
    work: Work,
    runs_dir: Path,
    data_dir: Path,
    quiet: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Summary:
    """Finish every cell that is not done. Failed cells are retried as configured, then recorded; others continue."""
    left = [cell for cell in grid.cells if not is_current(cell, runs_dir, data_dir)]
    for note in damage_notes(left, runs_dir):
        say(note)
    execution = execution_of(grid, executor, quiet)
    # Workers may have another working directory, and be on another machine, with a cache of its own.
    places, plugins = (runs_dir.absolute(), portable(data_dir)), allowed_plugins()
    jobs = {cell.name: Job(cell, execution, *places, plugins) for cell in left}
    done_before, total = len(grid.cells) - len(left), len(grid.cells)
    failures, losses = Counter[str](), Counter[str]()
    given_up: list[Outcome] = []
    done = 0
    with stopped_by_sigterm():
        while jobs:
            again: dict[str, Job] = {}
            for outcome in executor.run(work, list(jobs.values())):
                name, job = outcome.cell_name, jobs[outcome.cell_name]
                failures[name] += outcome.status == "failed"
                losses[name] += outcome.status == "lost"
                if outcome.status == "done":
                    done += 1
                    say(f"{done_before + done} of {total} done: {name}")
                elif outcome.status == "busy":
                    again[name] = with_wait(job)
                elif _is_hopeless(outcome, failures[name], losses[name], grid.file.execution.retries):
                    given_up.append(outcome)
                    write_error(job.run_dir, outcome, failures[name] + losses[name])
                    say(f"failed: {name}: {outcome.error}")
                else:
                    again[name] = with_wait(job)  # a lost worker may still hold the lock while it dies
                    say(f"to be retried: {name}: {outcome.error}")
            jobs = again
    return Summary(done_before, done, tuple(given_up))


def execution_of(grid: Grid, executor: Executor, quiet: bool) -> Execution:
    """The grid's thread count, or the cores divided among the workers."""
    settings = grid.file.execution
    threads = settings.threads
    if threads is None and executor.num_workers is None:
        raise UserError("set the threads per run on the cluster with --threads, or with threads under [execution]")
    if threads is None:
        threads = max(1, len(os.sched_getaffinity(0)) // (executor.num_workers or 1))
    return Execution(settings.device, settings.precision, threads, settings.checkpoint_seconds, quiet=quiet)


def _is_hopeless(outcome: Outcome, failures: int, losses: int, retries: int) -> bool:
    if outcome.status == "lost":
        return losses > MAX_LOSSES
    return outcome.is_final or failures > retries
