"""Summaries of a grid's scores: tables in the paper's layout, and each column over all datasets.

A number is bold only if it is the best on its dataset and the 95 % interval of its difference to every other,
paired by seed, excludes zero. With fewer than `MIN_SEEDS` seeds, nothing is bold.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manicap.bench.grid import Grid
from manicap.bench.scores import GridScores, RunScore
from manicap.core.seeding import numpy_generator
from manicap.statistics.estimates import (
    Estimate,
    Floats,
    Interval,
    Profile,
    Statistic,
    bootstrap_interval,
    deviation,
    interquartile_mean,
    mean,
    performance_profile,
    probability_of_improvement,
)

MIN_SEEDS = 3
"""With two runs of each, all of one exceed all of the other by chance in a third of cases."""
METRICS = {"f1": "F1", "accuracy": "accuracy"}
MEAN_ROW = "mean"
BOLD_RULE = (
    "Bold: the best on its dataset, and the 95 % interval of its difference to every other (paired by seed) excludes"
    f" zero; never with fewer than {MIN_SEEDS} seeds."
)


@dataclass(frozen=True)
class Entry:
    """A cell of a table. What was not run has no mean."""

    values: tuple[tuple[int, float], ...] = ()
    """(seed, score); empty in the row of means."""
    mean: float | None = None
    deviation: float | None = None
    published: float | None = None
    published_deviation: float | None = None
    is_bold: bool = False

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class ScoreTable:
    """In the paper's layout. Atari: one row per dataset, one column per method, the mean last. Images: transposed."""

    rows: Mapping[str, str]
    """Key and title of each."""
    columns: Mapping[str, str]
    entries: Mapping[tuple[str, str], Entry]
    """By row key and column key."""
    is_transposed: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns with published scores."""
        return tuple(c for c in self.columns if any(self.entries[row, c].published is not None for row in self.rows))


@dataclass(frozen=True)
class Aggregate:
    """A column over all its runs."""

    column: str
    num_runs: int
    widths: tuple[int, ...]
    mean: Estimate
    iqm: Estimate
    difference: Estimate | None
    """Difference to the baseline, over the runs that both have; None for the baseline itself, or without such runs."""
    improvement: Estimate | None
    """Probability that a run beats one of the baseline's."""
    is_distinct: bool
    """The difference's interval excludes zero, over enough seeds."""


@dataclass(frozen=True)
class SweepPoint:
    value: object
    mean: float
    interval: Interval
    published: float | None


@dataclass(frozen=True)
class Sweep:
    """A metric as a function of what varies in a variant, on one dataset."""

    method: str
    varied: str
    dataset: str
    points: tuple[SweepPoint, ...]


class Summary:
    """All that a report shows for one way of probing and one metric."""

    def __init__(self, grid: Grid, found: GridScores, evaluation: str, metric: str, seed: int = 0) -> None:
        self.grid, self.evaluation, self.metric, self.seed = grid, evaluation, metric, seed
        self.domain = grid.domain
        self.scores: dict[tuple[str, str], dict[int, RunScore]] = defaultdict(dict)
        for score in found.scores:
            if score.evaluation == evaluation and metric in score.metrics:
                self.scores[score.dataset, score.column][score.seed] = score

    @property
    def num_seeds(self) -> int:
        """The largest number of runs of any column and dataset: with one there are no deviations and no intervals."""
        return max(map(len, self.scores.values()), default=0)

    def values(self, dataset: str, column: str) -> dict[int, float]:
        """Seed to score."""
        runs = self.scores.get((dataset, column), {})
        return {seed: runs[seed].metrics[self.metric] for seed in sorted(runs)}

    def by_dataset(self, column: str) -> list[Floats]:
        found = (self.values(dataset, column) for dataset in self.grid.datasets)
        return [np.array(list(values.values())) for values in found if values]

    @cached_property
    def table(self) -> ScoreTable:
        entries: dict[tuple[str, str], Entry] = {}
        for dataset in self.grid.datasets:
            best = self._best(dataset)
            for column in self.grid.columns:
                entries[dataset, column.label] = self._entry(dataset, column.label, column.label == best)
        for column in self.grid.columns:
            entries[MEAN_ROW, column.label] = _mean_entry([entries[d, column.label] for d in self.grid.datasets])
        methods = {column.label: column.label for column in self.grid.columns}
        datasets = {dataset: self.domain.subject_title(dataset) for dataset in self.grid.datasets}
        if self.domain.methods_down:
            swapped = {(label, dataset): entries[dataset, label] for label in methods for dataset in datasets}
            return ScoreTable(methods, datasets, swapped, is_transposed=True)
        return ScoreTable(datasets | {MEAN_ROW: "Mean"}, methods, entries)

    def _entry(self, dataset: str, label: str, is_bold: bool) -> Entry:
        values = self.values(dataset, label)
        scores = np.array(list(values.values()))
        (column,) = [column for column in self.grid.columns if column.label == label]
        published, spread = None, None
        if not column.overrides:
            published, spread = self._published(dataset, column.method)
        elif column.sweep is not None and self.metric == self.domain.metrics[0]:
            published = self.domain.published_sweep(dataset, column.sweep, column.point)
        if not values:
            return Entry(published=published, published_deviation=spread)
        return Entry(tuple(values.items()), float(scores.mean()), deviation(scores), published, spread, is_bold=is_bold)

    def _published(self, dataset: str, method: str) -> tuple[float | None, float | None]:
        """Mean and deviation that the paper prints for an unmodified method."""
        for entry in self.domain.published(dataset):
            if entry.method == method and self.metric in entry.scores:
                return entry.scores[self.metric]
        return None, None

    def _best(self, dataset: str) -> str | None:
        """The column to set in bold, if any."""
        found = {c.label: self.values(dataset, c.label) for c in self.grid.columns if self.values(dataset, c.label)}
        if len(found) < 2:
            return None
        best = max(found, key=lambda label: float(np.mean(list(found[label].values()))))
        others = [label for label in found if label != best]
        return best if all(self._is_distinct(best, other, [dataset]) for other in others) else None

    def _paired(self, a: str, b: str, datasets: Sequence[str]) -> list[Floats]:
        """Differences of the runs with equal seeds, by dataset."""
        found = []
        for dataset in datasets:
            first, second = self.values(dataset, a), self.values(dataset, b)
            shared = sorted(set(first) & set(second))
            if shared:
                found.append(np.array([first[seed] - second[seed] for seed in shared]))
        return found

    def _difference(self, a: str, b: str, datasets: Sequence[str]) -> Estimate | None:
        paired = self._paired(a, b, datasets)
        if not paired:
            return None
        return self._estimate(paired, mean, "difference", a, b, *datasets)

    def _is_distinct(self, a: str, b: str, datasets: Sequence[str]) -> bool:
        paired = self._paired(a, b, datasets)
        if not paired or min(map(len, paired)) < MIN_SEEDS:
            return False
        difference = self._difference(a, b, datasets)
        return difference is not None and difference.interval.excludes_zero

    def _estimate(self, by_dataset: Sequence[Floats], statistic: Statistic, *name: str) -> Estimate:
        # Each interval has its own stream, so adding a column does not change another column's numbers.
        generator = numpy_generator(self.seed, "report", self.evaluation, self.metric, *name)
        value = float(statistic(np.concatenate(by_dataset)))
        return Estimate(value, bootstrap_interval(by_dataset, statistic, generator))

    @cached_property
    def aggregates(self) -> list[Aggregate]:
        """Columns that have runs, in the grid's order."""
        found = []
        for column in self.grid.columns:
            label, scores = column.label, self.by_dataset(column.label)
            if not scores:
                continue
            runs = [run for dataset in self.grid.datasets for run in self.scores.get((dataset, label), {}).values()]
            is_baseline = label == self.grid.baseline
            found.append(
                Aggregate(
                    label,
                    num_runs=len(runs),
                    widths=tuple(sorted({run.width for run in runs})),
                    mean=self._estimate(scores, mean, "mean", label),
                    iqm=self._estimate(scores, interquartile_mean, "iqm", label),
                    difference=None if is_baseline else self._difference(label, self.grid.baseline, self.grid.datasets),
                    improvement=None if is_baseline else self._improvement(label),
                    is_distinct=not is_baseline and self._is_distinct(label, self.grid.baseline, self.grid.datasets),
                )
            )
        return found

    def _improvement(self, label: str) -> Estimate | None:
        shared = [d for d in self.grid.datasets if self.values(d, label) and self.values(d, self.grid.baseline)]
        if not shared:
            return None
        own, others = (
            [np.array(list(self.values(dataset, name).values())) for dataset in shared]
            for name in (label, self.grid.baseline)
        )
        generator = numpy_generator(self.seed, "report", self.evaluation, self.metric, "improvement", label)
        return probability_of_improvement(own, others, generator)

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """By column; only columns with runs on the same datasets are comparable."""
        thresholds = np.linspace(0, 1, 101)
        found = {}
        for column in self.grid.columns:
            scores = self.by_dataset(column.label)
            if len(scores) == len(self.grid.datasets):
                generator = numpy_generator(self.seed, "report", self.evaluation, self.metric, "profile", column.label)
                found[column.label] = performance_profile(scores, thresholds, generator, num_resamples=1000)
        return found

    @cached_property
    def sweeps(self) -> list[Sweep]:
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        columns = {column.label: column for column in self.grid.columns}
        for column in self.grid.columns:
            if column.sweep is not None:
                groups[column.method, column.sweep].append(column.label)
        found = []
        for (method, varied), labels in groups.items():
            for dataset in self.grid.datasets:
                points = [self._sweep_point(dataset, label, varied, columns[label].point) for label in labels]
                measured = tuple(point for point in points if point is not None)
                if len(measured) > 1:
                    found.append(Sweep(method, varied, dataset, measured))
        return found

    def _sweep_point(self, dataset: str, label: str, varied: str, point: tuple[object, ...]) -> SweepPoint | None:
        scores = np.array(list(self.values(dataset, label).values()))
        if not len(scores):
            return None
        estimate = self._estimate([scores], mean, "sweep", dataset, label)
        value = point[0] if len(point) == 1 else " × ".join(map(str, point))
        is_first = self.metric == self.domain.metrics[0]
        published = self.domain.published_sweep(dataset, varied, point) if is_first else None
        return SweepPoint(value, estimate.value, estimate.interval, published)


def _mean_entry(entries: Sequence[Entry]) -> Entry:
    """Mean over the datasets, if all were run; the deviation is the mean of theirs, as in the paper's tables."""
    means = [entry.mean for entry in entries if entry.mean is not None]
    spreads = [entry.deviation for entry in entries if entry.deviation is not None]
    published = [entry.published for entry in entries if entry.published is not None]
    printed = [entry.published_deviation for entry in entries if entry.published_deviation is not None]

    def average(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values and len(values) == len(entries) else None

    return Entry((), average(means), average(spreads), average(published), average(printed))


def summaries(grid: Grid, found: GridScores) -> list[Summary]:
    """Every way of probing with every metric that it has."""
    return [
        Summary(grid, found, evaluation, metric)
        for evaluation in grid.evaluations
        for metric in METRICS
        if any(score.evaluation == evaluation and metric in score.metrics for score in found.scores)
    ]
