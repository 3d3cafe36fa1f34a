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

    @property
    def cell(self) -> Cell:
        return self.subject, self.seed


@dataclass(frozen=True)
class Row:
    """One method, trained in one way."""

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
        first = max(16, *(len(row.method) + 1 for row in self.rows))
        head = f"{'method':<{first}}{'runs':>5}{self.subjects:>6}{'width':>7}  {'mean':<22}{'IQM':<22}paired difference"
        lines = [_line(row, first) for row in self.rows]
        return "\n".join([head, *lines, *(f"not comparable: {text}" for text in self.mismatches)])


def compare(
    results: Sequence[Measured],
    *,
    metric: str = "f1",
    baseline: str | None = None,
    allow_mismatch: bool = False,
    num_resamples: int = 2000,
    seed: int = 0,
    subjects: str = "games",
) -> Comparison:
    """Mean, interquartile mean, 95% intervals and paired differences to `baseline` (by default the best method).

    Refuses to rank runs that differ in protocol, annotation set, probe, probe width, games or probe frames, unless
    `allow_mismatch`.
    """
    measured = {name for name in (results[0].scores if results else ()) if all(name in r.scores for r in results)}
    if metric not in measured and results:
        raise unknown_choice("metric", metric, measured)
    mismatches = check_comparable(results, baseline, allow_mismatch, subjects)
    names = name_groups(results)
    scores: dict[str, dict[Cell, float]] = defaultdict(dict)
    widths: dict[str, set[int]] = defaultdict(set)
    for name, result in zip(names, results, strict=True):
        scores[name][result.cell] = float(result.scores[metric])
        widths[name].add(result.width)
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
            return bootstrap_interval(by_game, statistic, rng, num_resamples) if has_spread else None

        shared = sorted(set(found) & set(scores[reference]))
        paired = None
        if method != reference and shared:
            own, others = (np.array([source[cell] for cell in shared]) for source in (found, scores[reference]))
            paired = paired_test(own, others, numpy_generator(seed, "paired test", method))
        rows.append(
            Row(
                method,
                num_runs=len(found),
                num_games=len(by_game),
                width=tuple(sorted(widths[method])),
                mean=mean(everything),
                mean_interval=interval(mean, "mean"),
                iqm=interquartile_mean(everything),
                iqm_interval=interval(interquartile_mean, "iqm"),
                versus=None if method == reference else reference,
                paired=paired,
            )
        )
    return Comparison(metric, tuple(rows), tuple(mismatches), subjects)


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


def _line(row: Row, first: int) -> str:
    width = "/".join(map(str, row.width))
    cells = [_estimate(row.mean, row.mean_interval), _estimate(row.iqm, row.iqm_interval)]
    difference = ""
    if row.paired is not None:
        paired = row.paired
        sure = f"p = {paired.p_value:.3f}, {paired.num_pairs} pairs" if paired.p_value is not None else "one pair"
        difference = f"{paired.difference:+.3f} to {row.versus} ({sure})"
    front = f"{row.method:<{first}}{row.num_runs:>5}{row.num_games:>6}{width:>7}"
    return f"{front}  {cells[0]:<22}{cells[1]:<22}{difference}".rstrip()


def _estimate(value: float, interval: Interval | None) -> str:
    return f"{value:.3f}" if interval is None else f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
