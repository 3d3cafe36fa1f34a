"""Compares methods over seeds and subjects (games, image datasets), provided they were measured in the same way.

    compare([Measured("pong", "dim-c+", seed=0, width=256, scores={"f1": 0.8}), ...])

Runs of two methods with the same subject and seed are paired.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from manicap.core.errors import UserError, unknown_choice
from manicap.core.seeding import numpy_generator
from manicap.probing.labels_saved import joined_bound
from manicap.statistics.estimates import (
    Floats,
    Interval,
    PairedTest,
    Statistic,
    bootstrap_interval,
    interquartile_mean,
    mean,
    paired_test,
)
from manicap.statistics.groups import name_groups
from manicap.statistics.scales import Scale, order_metrics, scale_of

Cell = tuple[str, int]
"""(subject, seed)"""


@dataclass(frozen=True)
class Measured:
    """One measured run; or one yet to be measured, without scores and store."""

    subject: str
    """The game or the dataset."""
    method: str
    seed: int
    """The run's seed, used to train the encoder."""
    width: int
    """Number of features that the probe saw."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """By metric."""
    store: str | None = None
    """Fingerprint of the data used for probing."""
    config: Mapping[str, Any] | None = None
    """The run's config. Runs are pooled only if their configs agree in all but seed and subject (see `groups`)."""
    probed: Mapping[str, Any] = field(default_factory=dict)
    """What else must be equal, by its name for display: protocol, annotation set, probe, probe options."""
    bounds: Mapping[str, str] = field(default_factory=dict)
    """By metric: `at least` or `at most`, if its score is only a bound."""

    @property
    def cell(self) -> Cell:
        return self.subject, self.seed


@dataclass(frozen=True)
class Row:
    """One method, trained in one way. Means and differences of a ratio are factors (see `scales`)."""

    method: str
    """With the settings that distinguish it, if it was trained in several ways."""
    num_runs: int
    num_games: int
    width: tuple[int, ...]
    """Number of features that its probes saw."""
    mean: float
    mean_interval: Interval | None
    """None if no game has two runs: nothing is known about their spread."""
    iqm: float
    iqm_interval: Interval | None
    versus: str | None
    """The method that the paired difference refers to; None for that method itself."""
    paired: PairedTest | None
    """None if the two share no (game, seed)."""
    bound: str = ""
    """`at least` or `at most`, if the scores of some runs are only bounds."""


@dataclass(frozen=True)
class Comparison:
    metric: str
    rows: tuple[Row, ...]
    """Best mean first."""
    mismatches: tuple[str, ...]
    """What differs between the runs and was allowed; the order is then meaningless."""
    subjects: str = "games"
    """What the runs were trained on: games, or (image) sets."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        scale = scale_of(self.metric)
        cells = [_cells(row, scale) for row in self.rows]
        first = max(16, *(len(row.method) + 1 for row in self.rows))
        wide = max(22, *(len(cell) + 2 for row in cells for cell in row[:2]))
        paired = "paired factor" if scale.is_ratio else "paired difference"
        lines = [
            f"{'method':<{first}}{'runs':>5}{self.subjects:>6}{'width':>7}  {'mean':<{wide}}{'IQM':<{wide}}{paired}"
        ]
        for row, (mean_cell, iqm_cell, difference) in zip(self.rows, cells, strict=True):
            front = f"{row.method:<{first}}{row.num_runs:>5}{row.num_games:>6}{'/'.join(map(str, row.width)):>7}"
            lines.append(f"{front}  {mean_cell:<{wide}}{iqm_cell:<{wide}}{difference}".rstrip())
        return "\n".join([*lines, *(f"not comparable: {text}" for text in self.mismatches)])


def compare(
    results: Sequence[Measured],
    *,
    metric: str | None = None,
    metrics: Sequence[str] = ("labels_saved", "r2", "f1", "accuracy", "macro_f1"),
    baseline: str | None = None,
    allow_mismatch: bool = False,
    num_resamples: int = 2000,
    seed: int = 0,
    subjects: str = "games",
) -> Comparison:
    """Mean, interquartile mean, 95% intervals and paired differences to `baseline` (by default the best method).

    Without `metric`, the first of `metrics` that all results have (see `order_metrics`). Refuses to rank runs that
    differ in protocol, annotation set, probe, probe width, games or probe frames, unless `allow_mismatch`.
    """
    mismatches = check_comparable(results, baseline, allow_mismatch, subjects)
    chosen = choose_metric(metric, metrics, results)
    scale, names = scale_of(chosen), name_groups(results)
    scores: dict[str, dict[Cell, float]] = defaultdict(dict)
    runs: dict[str, list[Measured]] = defaultdict(list)
    for name, result in zip(names, results, strict=True):
        scores[name][result.cell] = float(scale.values([result.scores[chosen]])[0])
        runs[name].append(result)
    order = sorted(scores, key=lambda method: -mean(np.array(list(scores[method].values()))))
    reference = order[0] if baseline is None else _find_group(baseline, names, results)
    rows = []
    for method in order:
        found = scores[method]
        by_game = [np.array([found[cell] for cell in sorted(found) if cell[0] == game]) for game in _games(found)]
        everything = np.concatenate(by_game)

        def interval(statistic: Statistic, name: str, method: str = method, by_game: list[Floats] = by_game) -> Any:
            # Each interval has its own stream, so adding a method does not change another method's numbers.
            rng = numpy_generator(seed, "bootstrap", method, name)
            has_spread = any(len(runs) > 1 for runs in by_game)
            return scale.interval(bootstrap_interval(by_game, statistic, rng, num_resamples) if has_spread else None)

        shared = sorted(set(found) & set(scores[reference]))
        paired = None
        if method != reference and shared:
            own, others = (np.array([source[cell] for cell in shared]) for source in (found, scores[reference]))
            paired = scale.paired(paired_test(own, others, numpy_generator(seed, "paired test", method)))
        rows.append(
            Row(
                method,
                num_runs=len(found),
                num_games=len(by_game),
                width=tuple(sorted({run.width for run in runs[method]})),
                mean=scale.back(mean(everything)),
                mean_interval=interval(mean, "mean"),
                iqm=scale.back(interquartile_mean(everything)),
                iqm_interval=interval(interquartile_mean, "iqm"),
                versus=None if method == reference else reference,
                paired=paired,
                bound=joined_bound(run.bounds.get(chosen, "") for run in runs[method]),
            )
        )
    return Comparison(chosen, tuple(rows), tuple(mismatches), subjects)


def choose_metric(metric: str | None, metrics: Sequence[str], results: Sequence[Measured]) -> str:
    """The metric asked for, or the first of `metrics` that all results have; a `UserError` if they do not."""
    measured = {name for name in results[0].scores if all(name in result.scores for result in results)}
    if metric is not None and metric not in measured:
        if metric in metrics:
            raise UserError(f"the results have no {metric}, only {', '.join(order_metrics(metrics, measured))}")
        raise unknown_choice("metric", metric, measured)
    ordered = order_metrics(metrics, measured) or sorted(measured)
    if not ordered:
        raise UserError("the results have no metric in common")
    return metric or ordered[0]


def check_comparable(
    results: Sequence[Measured], baseline: str | None = None, allow_mismatch: bool = False, subjects: str = "games"
) -> list[str]:
    """What differs and was allowed, or a `UserError`. Results may lack what is not yet measured: scores, stores."""
    if not results:
        raise UserError("there are no results to compare")
    names = name_groups(results)
    seen: set[tuple[str, Cell]] = set()
    for name, result in zip(names, results, strict=True):
        game, seed = result.cell
        if (name, (game, seed)) in seen:
            raise UserError(f"{name} on {game} with seed {seed} is given twice")
        seen.add((name, (game, seed)))
    if baseline is not None:
        _find_group(baseline, names, results)
    mismatches = find_mismatches(results, subjects)
    if mismatches and not allow_mismatch:
        raise UserError(
            f"these runs cannot be ranked: {'; '.join(mismatches)}; compare them anyway with allow_mismatch"
            " (--allow-mismatch)"
        )
    return mismatches


def _find_group(baseline: str, names: Sequence[str], results: Sequence[Measured]) -> str:
    """The group with this name, or the only group of the method with this name."""
    found = {name for name, result in zip(names, results, strict=True) if baseline in (name, result.method)}
    if len(found) != 1:
        raise unknown_choice("method", baseline, set(names))
    return found.pop()


def find_mismatches(results: Sequence[Measured], subjects: str = "games") -> list[str]:
    """Why the results cannot be ranked, one sentence per reason; empty if they can."""
    found = []
    groups = name_groups(results)
    for key in dict.fromkeys(key for result in results for key in (*result.probed, "probe width")):
        by_value: dict[str, set[str]] = defaultdict(set)
        for group, result in zip(groups, results, strict=True):
            value = result.width if key == "probe width" else result.probed.get(key)
            by_value[str(value)].add(group)
        if len(by_value) > 1:
            shown = ", ".join(f"{value} ({', '.join(sorted(methods))})" for value, methods in sorted(by_value.items()))
            found.append(f"they differ in {key}: {shown}")
    by_group: dict[str, set[str]] = defaultdict(set)
    stores: dict[Cell, set[str]] = defaultdict(set)
    for group, result in zip(groups, results, strict=True):
        by_group[group].add(result.subject)
        stores[result.cell].add(str(result.store))
    if len({frozenset(names) for names in by_group.values()}) > 1:
        shown = ", ".join(f"{method} has {', '.join(sorted(names))}" for method, names in sorted(by_group.items()))
        found.append(f"they differ in {subjects}: {shown}")
    for (subject, seed), names in sorted(stores.items()):
        if len(names) > 1:
            found.append(
                f"on {subject} with seed {seed} they were probed on different data ({', '.join(sorted(names))})"
            )
    return found


def _games(found: Mapping[Cell, float]) -> list[str]:
    return sorted({game for game, _ in found})


def _cells(row: Row, scale: Scale) -> tuple[str, str, str]:
    """Mean, interquartile mean and paired difference as they are shown."""
    values = ((row.mean, row.mean_interval), (row.iqm, row.iqm_interval))
    mean_cell, iqm_cell = (f"{row.bound} {scale.text(*each)}".strip() for each in values)
    difference = ""
    if row.paired is not None:
        paired = row.paired
        sure = f"p = {paired.p_value:.3f}, {paired.num_pairs} pairs" if paired.p_value is not None else "one pair"
        difference = f"{scale.difference_text(paired.difference)} to {row.versus} ({sure})"
    return mean_cell, iqm_cell, difference
