"""The scores of a grid's runs, read from their results: what a report is made of. What was not run is not there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manicap.bench.cell import measured, read_error
from manicap.bench.grid import Grid
from manicap.core.errors import UserError
from manicap.domains.result import RunResult
from manicap.jobs.differences import differences_from_paper
from manicap.train.logs import METRICS, read_log


@dataclass(frozen=True)
class RunScore:
    """One run, probed in one way."""

    dataset: str
    column: str
    seed: int
    evaluation: str
    """Name of the way of probing."""
    metrics: Mapping[str, float]
    """As the domain measures them: f1 and accuracy, or accuracy and top5."""
    width: int
    """Features that the probe saw."""
    steps: int
    run_name: str


@dataclass(frozen=True)
class Curve:
    """Validation loss of one run."""

    dataset: str
    column: str
    seed: int
    steps: tuple[int, ...]
    losses: tuple[float, ...]


@dataclass(frozen=True)
class GridScores:
    scores: tuple[RunScore, ...]
    curves: tuple[Curve, ...]
    errors: Mapping[str, str]
    """Run name to the error it ended with."""
    lost_curves: Mapping[str, str]
    """Name of a measured run to why its log cannot be read: its scores stand, its curve is left out."""
    differences: tuple[str, ...]
    """From the paper's setting, of the columns that are methods as they are, each probed in the way nearest to it."""


def gather_scores(grid: Grid, runs_dir: Path) -> GridScores:
    scores: list[RunScore] = []
    curves: list[Curve] = []
    errors: dict[str, str] = {}
    lost_curves: dict[str, str] = {}
    differences: dict[str, None] = {}
    plain = {column.label for column in grid.columns if not column.overrides}
    for (dataset, label, seed), cell in grid.places.items():
        run_dir = runs_dir / cell.name
        found = [(name, measured(run_dir, evaluation)) for name, evaluation in grid.evaluations.items()]
        for name, result in found:
            if result is not None:
                scores.append(_score(dataset, label, seed, name, result, cell.name))
        results = [result for _, result in found if result is not None]
        if found[0][1] is not None:
            try:
                curves += _curve(dataset, label, seed, run_dir)
            except UserError as damage:  # a report of hundreds of runs is not given up for one curve
                lost_curves[cell.name] = str(damage)
            if label in plain:
                told = (differences_from_paper(result, len(grid.file.seeds)) for result in results)
                differences |= dict.fromkeys(sorted(told, key=len)[0])
        elif (why := read_error(run_dir)) is not None:
            errors[cell.name] = why
    return GridScores(tuple(scores), tuple(curves), errors, lost_curves, tuple(differences))


def _score(dataset: str, label: str, seed: int, name: str, result: RunResult, run_name: str) -> RunScore:
    evaluation = result.evaluation
    metrics, steps = evaluation.scores.metrics, result.training.steps
    return RunScore(dataset, label, seed, name, metrics, evaluation.width, steps, run_name)


def _curve(dataset: str, label: str, seed: int, run_dir: Path) -> Sequence[Curve]:
    """None for a run that is not trained."""
    lines = read_log(run_dir, METRICS, "val")
    if not lines:
        return ()
    return (Curve(dataset, label, seed, tuple(x["step"] for x in lines), tuple(x["loss"] for x in lines)),)
