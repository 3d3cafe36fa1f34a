"""One cell of a grid: collect, train, probe in every way. It resumes where it stopped; finished work is never repeated.

    run_cell(Job(cell, execution, runs_dir, data_dir))     -> Outcome

runs/<name>/.cell.lock     held by whoever works on the cell: two grids, or two calls of one, never run it twice
runs/<name>/error.json     why it failed, until it succeeds
"""

import json
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from manicap.bench.grid import Cell
from manicap.core.errors import Failure, Interruption, UserError
from manicap.core.files import exclusive_lock, write_json
from manicap.core.memo import opened_once
from manicap.core.registry import allow_plugins
from manicap.core.remote import local_directory
from manicap.core.results import has_result
from manicap.domains.base import find_domain
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.result import RunResult
from manicap.jobs.probing import probe, result_path
from manicap.jobs.run import run_job
from manicap.jobs.same_data import is_of_data
from manicap.pretrained.encoder_files import read_description
from manicap.probing.feature_cache import has_features, remove_features
from manicap.train.setup import Execution

Status = Literal["done", "failed", "busy", "lost"]


@dataclass(frozen=True)
class Job:
    """A cell with everything needed to run it, even in another process or on another machine."""

    cell: Cell
    execution: Execution
    runs_dir: Path
    data_dir: Path | str
    """A path, or the URL of which every machine has its own cache."""
    plugins: tuple[str, ...] = ()
    """Import paths named by the caller."""
    wait: bool = False
    """Wait if another process is working on the cell, instead of reporting it as busy."""

    @property
    def run_dir(self) -> Path:
        return self.runs_dir / self.cell.name

    @property
    def local_data_dir(self) -> Path:
        return local_directory(self.data_dir)


@dataclass(frozen=True)
class Outcome:
    cell_name: str
    status: Status
    """busy: another process has it. lost: the worker disappeared (killed, or its node was removed)."""
    error: str = ""
    details: str = ""
    """The traceback of a failure."""
    is_final: bool = False
    """Retrying would fail again: a mistake in the config, or a run under different conditions in its directory."""


Work = Callable[[Job], Outcome]
"""What an executor calls for every job: a module-level function, so that it can be sent to another process."""
ShowRun = Callable[[Path, Path], Any]

DAMAGE = (UserError, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading raises if a JSON file is truncated, or its content is not what was written."""


class _Busy(Exception):
    pass


def run_cell(job: Job, show: ShowRun | None = None) -> Outcome:
    """Finish a cell and write its page with `show(run_dir, data_dir)`. Failures are outcomes; interruptions raise."""

    def give_way() -> None:
        if not job.wait:
            raise _Busy

    name = job.cell.name
    allow_plugins(job.plugins)
    try:
        with opened_once(), exclusive_lock(job.run_dir / ".cell.lock", on_wait=give_way):
            if not is_current(job.cell, job.runs_dir, job.local_data_dir):
                _set_damaged_aside(job.cell, job.runs_dir)
                _run(job)
                if show is not None:
                    show(job.run_dir, job.local_data_dir)
                remove_features(job.run_dir)  # last: while they exist, the cell is not finished
            (job.run_dir / "error.json").unlink(missing_ok=True)
    except _Busy:
        return Outcome(name, "busy")
    except Interruption:
        raise
    except UserError as error:
        return Outcome(name, "failed", str(error), is_final=True)
    except Failure as error:
        return Outcome(name, "failed", str(error))
    except Exception as error:  # a grid of hundreds of runs must survive whatever one of them does
        return Outcome(name, "failed", f"{type(error).__name__}: {error}", traceback.format_exc())
    return Outcome(name, "done")


def _run(job: Job) -> None:
    config, evaluations, execution = job.cell.config, job.cell.evaluations, job.execution
    if not (job.run_dir / "encoder.json").is_file():  # report mistakes in any of its probes before training
        domain = find_domain(config.domain)
        domain.prepare(config, evaluations, job.local_data_dir, execution.threads, execution.quiet)
    places = (job.runs_dir, job.local_data_dir)
    run_job(config, evaluations[0], (config.seed,), execution, *places, keep_features=True)
    for evaluation in evaluations[1:]:
        probe(job.run_dir, evaluation, job.local_data_dir, execution.threads, execution.quiet)


def is_done(cell: Cell, runs_dir: Path) -> bool:
    return all(measured(runs_dir / cell.name, evaluation) is not None for evaluation in cell.evaluations)


def is_current(cell: Cell, runs_dir: Path, data_dir: Path) -> bool:
    """Whether the cell is complete, including what follows the results, and measured on the data on disk, if any."""
    run_dir = runs_dir / cell.name
    if has_features(run_dir):
        return False
    for evaluation in cell.evaluations:
        result = measured(run_dir, evaluation)
        if result is None or not is_of_data(result, cell.config, evaluation, data_dir):
            return False
    return True


def measured(run_dir: Path, evaluation: EvaluationConfig) -> RunResult | None:
    """The result of probing the run's current encoder in this way, if measured. Damaged files count as absent."""
    path = result_path(run_dir, evaluation)
    if not path.is_file() or not (run_dir / "encoder.json").is_file():
        return None
    try:
        result = RunResult.read(path)
        weights = read_description(run_dir)["sha256"].values()  # the chosen ones and the last
        return result if result.encoder.startswith(tuple(weights)) else None
    except DAMAGE:
        return None


def damaged_files(cell: Cell, runs_dir: Path) -> list[Path]:
    """Files of a cell that cannot be read, so that it counts as not done; for a probed cell, also a missing encoder."""
    run_dir = runs_dir / cell.name
    results = [path for path in _result_files(cell, run_dir) if has_result(path)]
    found = [path for path in results if not _is_sound(path)]
    if (results or has_result(run_dir / "encoder.json")) and not _has_sound_description(run_dir):
        found.append(run_dir / "encoder.json")
    return found


def damage_notes(cells: Iterable[Cell], runs_dir: Path) -> list[str]:
    """A sentence for every file that cannot be read, whose cell therefore counts as not done."""
    found = [(cell, path) for cell in cells for path in damaged_files(cell, runs_dir)]
    return [
        f"{path} is {'damaged' if has_result(path) else 'missing'}: {cell.name} counts as not done"
        for cell, path in found
    ]


def _result_files(cell: Cell, run_dir: Path) -> list[Path]:
    return [result_path(run_dir, evaluation) for evaluation in cell.evaluations]


def _is_sound(path: Path) -> bool:
    try:
        return bool(RunResult.read(path).encoder)
    except DAMAGE:
        return False


def _has_sound_description(run_dir: Path) -> bool:
    try:
        return bool(read_description(run_dir)["sha256"].values())
    except DAMAGE:
        return False


def _set_damaged_aside(cell: Cell, runs_dir: Path) -> None:
    """Set aside what cannot be read under another name; it is created again."""
    for path in filter(has_result, damaged_files(cell, runs_dir)):
        path.replace(path.with_name(f"{path.name}.damaged"))


def write_error(run_dir: Path, outcome: Outcome, attempts: int) -> None:
    details = outcome.details.splitlines()
    write_json(run_dir / "error.json", {"error": outcome.error, "attempts": attempts, "traceback": details})


def read_error(run_dir: Path) -> str | None:
    """Why the cell failed, if it did."""
    try:
        return str(json.loads((run_dir / "error.json").read_text())["error"])
    except FileNotFoundError:
        return None
    except DAMAGE:
        return "error.json, which states the reason, is damaged"


def with_wait(job: Job) -> Job:
    return replace(job, wait=True)
