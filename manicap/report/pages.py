"""How a run is shown, by what was probed: state variables or classes. A new kind of evaluation adds one line.

write_page(run_dir, data_dir)       `report.html`
job_table(results)                  for the terminal
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from manicap.domains.evaluation import Evaluation
from manicap.domains.result import RunResult
from manicap.probing.class_result import ClassEvaluation
from manicap.probing.state_result import StateEvaluation
from manicap.report.class_page import write_class_page
from manicap.report.play_page import write_play_page
from manicap.report.tables import class_table, state_table


@dataclass(frozen=True)
class Showing:
    write_page: Callable[[Path, Path], Path]
    """From a run's directory and the data directory to the run's page."""
    table: Callable[[Sequence[RunResult]], Table]
    """A table of runs that differ only in the seed."""


PAGES: dict[type[Evaluation], Showing] = {
    StateEvaluation: Showing(write_play_page, state_table),
    ClassEvaluation: Showing(write_class_page, class_table),
}


def write_page(run_dir: Path, data_dir: Path) -> Path:
    return PAGES[RunResult.read(run_dir / "result.json").domain.result_type].write_page(run_dir, data_dir)


def job_table(results: Sequence[RunResult]) -> Table:
    return PAGES[results[0].domain.result_type].table(results)
