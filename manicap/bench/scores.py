"""The scores of a grid's runs, read from their results, for its report. What was not run is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manicap.bench.cell import measured, read_error
from manicap.bench.grid import Grid
from manicap.core.errors import UserError
from manicap.domains.result import RunResult
from manicap.jobs.differences import differences_from_paper
from manicap.probing.class_result import ClassEvaluation
from manicap.statistics.scales import LABELS_SAVED
from manicap.train.logs import METRICS, read_log

CLASS_CURVES = "converged logistic"
"""The probe of the label curves of classes, whatever the probe of their scores."""


@dataclass(frozen=True)
class RunScore:
    """One run, probed in one way."""

    dataset: str
    column: str
    seed: int
    evaluation: str
    """Name of the way of probing."""
    metrics: Mapping[str, float]
    """The domain's metrics: labels saved and more, or accuracy and top5."""
    width: int
    """Number of features that the probe saw."""
    steps: int
    run_name: str
    probe: str
    curve_probe: str
    """The probe of the label curves: that of classes is not the one that scores them."""
    bounds: Mapping[str, str] = field(default_factory=dict)
    """By metric: `at least` or `at most`, if its score is only a bound."""
    labels: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Mean score over the variables by number of labels, of the encoder and of the same network untrained; empty for a
    probe without label curves."""

    def probe_of(self, metric: str) -> str:
        """The probe by which a metric was measured."""
        return self.curve_probe if metric == LABELS_SAVED else self.probe


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
    """Errors of failed runs, by run name."""
    lost_curves: Mapping[str, str]
    """Why the log of a measured run cannot be read, by run name: its scores are valid, its curve is left out."""
    differences: tuple[str, ...]
    """Differences from the paper's setting, for the columns that are plain methods, each in its closest evaluation."""


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
            except UserError as damage:  # one curve must not prevent a report of hundreds of runs
                lost_curves[cell.name] = str(damage)
            if label in plain:
                told = (differences_from_paper(result, len(grid.file.seeds)) for result in results)
                differences |= dict.fromkeys(sorted(told, key=len)[0])
        elif (why := read_error(run_dir)) is not None:
            errors[cell.name] = why
    return GridScores(tuple(scores), tuple(curves), errors, lost_curves, tuple(differences))


def _score(dataset: str, label: str, seed: int, name: str, result: RunResult, run_name: str) -> RunScore:
    evaluation = result.evaluation
    return RunScore(
        dataset,
        label,
        seed,
        name,
        evaluation.metrics,
        evaluation.width,
        result.training.steps,
        run_name,
        evaluation.probe,
        CLASS_CURVES if isinstance(evaluation, ClassEvaluation) else evaluation.probe,
        evaluation.bounds,
        {name: curve for name, curve in evaluation.label_curves.items() if name in ("encoder", "untrained")},
    )


def _curve(dataset: str, label: str, seed: int, run_dir: Path) -> Sequence[Curve]:
    """None for a method that is not trained."""
    lines = read_log(run_dir, METRICS, "val")
    if not lines:
        return ()
    return (Curve(dataset, label, seed, tuple(x["step"] for x in lines), tuple(x["loss"] for x in lines)),)
