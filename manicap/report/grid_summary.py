"""Summaries of a grid's scores: tables in the paper's layout, and each column over all datasets.

A number is bold only if it is the best on its dataset and the 95 % interval of its difference to every other,
paired by seed, excludes zero. With fewer than `MIN_SEEDS` seeds, nothing is bold.

All statistics are taken on the metric's scale (see `statistics.scales`): those of labels saved are factors.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from manicap.bench.grid import Grid
from manicap.bench.scores import GridScores, RunScore
from manicap.core.seeding import numpy_generator
from manicap.probing.labels_saved import joined_bound
from manicap.report.grid_entries import MEAN_ROW, METRICS, Aggregate, Entry, ScoreTable, Sweep, SweepPoint
from manicap.statistics.estimates import (
    Estimate,
    Floats,
    Profile,
    Statistic,
    bootstrap_interval,
    deviation,
    interquartile_mean,
    mean,
    performance_profile,
    probability_of_improvement,
)
from manicap.statistics.scales import order_metrics, scale_of

MIN_SEEDS = 3
"""With two runs of each, all of one exceed all of the other by chance in a third of cases. With three pairs, all
differences have one sign in a quarter, and then the bootstrap's interval excludes zero."""
SWEEP_METRIC = "f1"
"""What the paper states for the points of its sweeps."""
BOLD_RULE = (
    "Bold: the best on its dataset, and the 95 % interval of its difference to every other (paired by seed) excludes"
    f" zero; never with fewer than {MIN_SEEDS} seeds."
)


class Summary:
    """All that a report shows for one way of probing and one metric."""

    def __init__(self, grid: Grid, found: GridScores, evaluation: str, metric: str, seed: int = 0) -> None:
        self.grid, self.evaluation, self.metric, self.seed = grid, evaluation, metric, seed
        self.domain, self.scale = grid.domain, scale_of(metric)
        self.scores: dict[tuple[str, str], dict[int, RunScore]] = defaultdict(dict)
        for score in found.scores:
            if score.evaluation == evaluation and metric in score.metrics:
                self.scores[score.dataset, score.column][score.seed] = score

    @property
    def title(self) -> str:
        """The metric, the way of probing and the probe: no number stands without them."""
        return f"{METRICS[self.metric]}, {self.probed}"

    @property
    def probed(self) -> str:
        return f"{self.evaluation} ({self.probe} probe)"

    @property
    def probe(self) -> str:
        """Name of the probe by which the metric was measured in all its runs."""
        return ", ".join(sorted({run.probe_of(self.metric) for runs in self.scores.values() for run in runs.values()}))

    @cached_property
    def published_probe(self) -> str | None:
        """The probe of the published numbers, where they are beside ours; None if there are none."""
        if not self.table.compared:
            return None
        settings = (self.domain.paper_setting(d, c.method) for d in self.grid.datasets for c in self.grid.columns)
        probes = (getattr(setting.evaluation, "probe", None) for setting in settings if setting is not None)
        return next(probes, None)

    @property
    def has_another_probe(self) -> bool:
        """Whether the published numbers beside ours were measured with another probe."""
        return self.published_probe not in (None, self.probe)

    @property
    def num_seeds(self) -> int:
        """The largest number of runs of any column and dataset: with one there are no deviations and no intervals."""
        return max(map(len, self.scores.values()), default=0)

    def values(self, dataset: str, column: str) -> dict[int, float]:
        """Seed to score."""
        runs = self.scores.get((dataset, column), {})
        return {seed: runs[seed].metrics[self.metric] for seed in sorted(runs)}

    def by_dataset(self, column: str) -> list[Floats]:
        """Scores on the metric's scale."""
        found = (self.values(dataset, column) for dataset in self.grid.datasets)
        return [self.scale.values(values.values()) for values in found if values]

    @cached_property
    def table(self) -> ScoreTable:
        entries: dict[tuple[str, str], Entry] = {}
        for dataset in self.grid.datasets:
            best = self._best(dataset)
            for column in self.grid.columns:
                entries[dataset, column.label] = self._entry(dataset, column.label, column.label == best)
        for column in self.grid.columns:
            entries[MEAN_ROW, column.label] = self._mean_entry([entries[d, column.label] for d in self.grid.datasets])
        methods = {column.label: column.label for column in self.grid.columns}
        datasets = {dataset: self.domain.subject_title(dataset) for dataset in self.grid.datasets}
        if self.domain.methods_down:
            swapped = {(label, dataset): entries[dataset, label] for label in methods for dataset in datasets}
            return ScoreTable(methods, datasets, swapped, self.scale, is_transposed=True)
        return ScoreTable(datasets | {MEAN_ROW: "Mean"}, methods, entries, self.scale)

    def _entry(self, dataset: str, label: str, is_bold: bool) -> Entry:
        values = self.values(dataset, label)
        (column,) = [column for column in self.grid.columns if column.label == label]
        published, spread = None, None
        if not column.overrides:
            published, spread = self._published(dataset, column.method)
        elif column.sweep is not None and self.metric == SWEEP_METRIC:
            published = self.domain.published_sweep(dataset, column.sweep, column.point)
        if not values:
            return Entry(published=published, published_deviation=spread)
        scores = self.scale.values(values.values())
        own_spread = deviation(scores)
        return Entry(
            tuple(values.items()),
            self.scale.back(scores.mean()),
            None if own_spread is None else self.scale.back(own_spread),
            published,
            spread,
            is_bold,
            joined_bound(run.bounds.get(self.metric, "") for run in self.scores[dataset, label].values()),
        )

    def _mean_entry(self, entries: Sequence[Entry]) -> Entry:
        """Mean over the datasets, if all were run; the deviation is the mean of theirs, as in the paper's tables."""

        def average(name: str) -> float | None:
            values = [getattr(entry, name) for entry in entries if getattr(entry, name) is not None]
            return self.scale.back(self.scale.values(values).mean()) if values and len(values) == len(entries) else None

        return Entry(
            mean=average("mean"),
            deviation=average("deviation"),
            published=average("published"),
            published_deviation=average("published_deviation"),
            bound=joined_bound(entry.bound for entry in entries),
        )

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
        best = max(found, key=lambda label: float(self.scale.values(found[label].values()).mean()))
        others = [label for label in found if label != best]
        return best if all(self._is_distinct(best, other, [dataset]) for other in others) else None

    def _paired(self, a: str, b: str, datasets: Sequence[str]) -> list[Floats]:
        """Differences of the runs with equal seeds, by dataset, on the metric's scale."""
        found = []
        for dataset in datasets:
            first, second = self.values(dataset, a), self.values(dataset, b)
            shared = sorted(set(first) & set(second))
            if shared:
                own, others = (self.scale.values(runs[seed] for seed in shared) for runs in (first, second))
                found.append(own - others)
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
        """Of scores on the metric's scale, and on it."""
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
            difference = None if is_baseline else self._difference(label, self.grid.baseline, self.grid.datasets)
            found.append(
                Aggregate(
                    label,
                    num_runs=len(runs),
                    widths=tuple(sorted({run.width for run in runs})),
                    mean=self.scale.estimate(self._estimate(scores, mean, "mean", label)),
                    iqm=self.scale.estimate(self._estimate(scores, interquartile_mean, "iqm", label)),
                    difference=None if difference is None else self.scale.estimate(difference),
                    improvement=None if is_baseline else self._improvement(label),
                    is_distinct=not is_baseline and self._is_distinct(label, self.grid.baseline, self.grid.datasets),
                    bound=joined_bound(run.bounds.get(self.metric, "") for run in runs),
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
        thresholds = self._thresholds()
        found = {}
        for column in self.grid.columns:
            scores = self.by_dataset(column.label)
            if len(scores) == len(self.grid.datasets):
                generator = numpy_generator(self.seed, "report", self.evaluation, self.metric, "profile", column.label)
                profile = performance_profile(scores, thresholds, generator, num_resamples=1000)
                found[column.label] = replace(profile, thresholds=np.array([self.scale.back(x) for x in thresholds]))
        return found

    def _thresholds(self) -> Floats:
        """From 0 to 1; of a ratio, whose range is not known, from the smallest to the largest score and 1."""
        if not self.scale.is_ratio:
            return np.linspace(0, 1, 101)
        found = np.concatenate([[0.0], *(each for c in self.grid.columns for each in self.by_dataset(c.label))])
        return np.linspace(found.min(), found.max(), 101)

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
        scores = self.scale.values(self.values(dataset, label).values())
        if not len(scores):
            return None
        estimate = self.scale.estimate(self._estimate([scores], mean, "sweep", dataset, label))
        value = point[0] if len(point) == 1 else " × ".join(map(str, point))
        is_stated = self.metric == SWEEP_METRIC
        published = self.domain.published_sweep(dataset, varied, point) if is_stated else None
        return SweepPoint(value, estimate.value, estimate.interval, published)


def summaries(grid: Grid, found: GridScores) -> list[Summary]:
    """Every way of probing with every metric that it has, the most important first."""
    measured: dict[str, set[str]] = defaultdict(set)
    for score in found.scores:
        measured[score.evaluation] |= set(score.metrics)
    return [
        Summary(grid, found, evaluation, metric)
        for evaluation in grid.evaluations
        for metric in order_metrics(list(METRICS), measured[evaluation])
    ]
