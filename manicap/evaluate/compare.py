"""Methods side by side over seeds and games (or image datasets), if what was measured is the same.

    compare([{"method": "dim-c+", "game": "pong", "seed": 0, "evaluation": evaluation.to_dict()}, ...])

`seed` is the run's (the encoder's training); runs of two methods with the same game and seed are paired. A result on
images has a `dataset` in the place of a game.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from manicap.core.errors import UserError, unknown_choice
from manicap.core.seeding import numpy_generator
from manicap.evaluate.statistics import Interval, PairedTest, bootstrap_interval, interquartile_mean, mean, paired_test

Metric = Literal["f1", "accuracy", "top5"]
Cell = tuple[str, int]
"""(game or dataset, seed)"""

# What must be equal, and how people call it.
MUST_MATCH = {
    "protocol": "protocol",
    "annotation_set": "annotation set",
    "probe": "probe",
    "probe_options": "probe options",
    "width": "probe width",
}


@dataclass(frozen=True)
class Row:
    """One method."""

    method: str
    num_runs: int
    num_games: int
    width: tuple[int, ...]
    """Features that its probes saw."""
    mean: float
    mean_interval: Interval
    iqm: float
    iqm_interval: Interval
    versus: str | None
    """The method that the paired difference is taken to; None for that method itself."""
    paired: PairedTest | None
    """None where the two share no (game, seed)."""


@dataclass(frozen=True)
class Comparison:
    metric: Metric
    rows: tuple[Row, ...]
    """Best mean first."""
    mismatches: tuple[str, ...]
    """What differs between the runs and was allowed; the order then means nothing."""
    subjects: str = "games"
    """What the runs learned from: games, or (image) sets."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        header = f"{'method':<16}{'runs':>5}{self.subjects:>6}{'width':>7}  {'mean':<22}{'IQM':<22}paired difference"
        return "\n".join([header, *map(_line, self.rows), *(f"not comparable: {text}" for text in self.mismatches)])


def compare(
    results: Sequence[Mapping[str, Any]],
    *,
    metric: Metric = "f1",
    baseline: str | None = None,
    allow_mismatch: bool = False,
    num_resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Mean, interquartile mean, 95% intervals and paired differences to `baseline` (by default the best method).

    Refuses to rank runs that differ in protocol, annotation set, probe, probe width, games or probe frames, unless
    `allow_mismatch`.
    """
    if not results:
        raise UserError("there are no results to compare")
    measured = [name for name in get_args(Metric) if all(name in r["evaluation"]["scores"] for r in results)]
    if metric not in measured:
        raise unknown_choice("metric", metric, measured)
    scores: dict[str, dict[Cell, float]] = defaultdict(dict)
    for result in results:
        cell = (_subject(result), int(result["seed"]))
        if cell in scores[result["method"]]:
            raise UserError(f"{result['method']} on {cell[0]} with seed {cell[1]} is given twice")
        scores[result["method"]][cell] = float(result["evaluation"]["scores"][metric])
    mismatches = find_mismatches(results)
    if mismatches and not allow_mismatch:
        raise UserError(
            f"these runs cannot be ranked: {'; '.join(mismatches)}; compare them anyway with allow_mismatch"
        )

    order = sorted(scores, key=lambda method: -mean(np.array(list(scores[method].values()))))
    if baseline is not None and baseline not in scores:
        raise unknown_choice("method", baseline, scores)
    reference = baseline or order[0]
    rows = []
    for method in order:
        found = scores[method]
        by_game = [np.array([found[cell] for cell in sorted(found) if cell[0] == game]) for game in _games(found)]
        everything = np.concatenate(by_game)
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
                width=tuple(sorted({int(r["evaluation"]["width"]) for r in results if r["method"] == method})),
                mean=mean(everything),
                # Each interval from its own stream: adding a method moves no other method's numbers.
                mean_interval=bootstrap_interval(
                    by_game, mean, numpy_generator(seed, "bootstrap", method, "mean"), num_resamples
                ),
                iqm=interquartile_mean(everything),
                iqm_interval=bootstrap_interval(
                    by_game, interquartile_mean, numpy_generator(seed, "bootstrap", method, "iqm"), num_resamples
                ),
                versus=None if method == reference else reference,
                paired=paired,
            )
        )
    return Comparison(metric, tuple(rows), tuple(mismatches), _subjects(results))


def find_mismatches(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why the results cannot be ranked, a sentence each; empty if they can."""
    found = []
    for key, name in MUST_MATCH.items():
        by_value: dict[str, set[str]] = defaultdict(set)
        for result in results:
            by_value[str(result["evaluation"].get(key))].add(str(result["method"]))
        if len(by_value) > 1:
            shown = ", ".join(f"{value} ({', '.join(sorted(methods))})" for value, methods in sorted(by_value.items()))
            found.append(f"they differ in {name}: {shown}")
    games: dict[str, set[str]] = defaultdict(set)
    stores: dict[Cell, set[str]] = defaultdict(set)
    for result in results:
        games[str(result["method"])].add(_subject(result))
        stores[_subject(result), int(result["seed"])].add(str(result["evaluation"]["store"]))
    if len({frozenset(names) for names in games.values()}) > 1:
        shown = ", ".join(f"{method} has {', '.join(sorted(names))}" for method, names in sorted(games.items()))
        found.append(f"they differ in {_subjects(results)}: {shown}")
    kind = "stores" if _subjects(results) == "games" else "images"
    for (game, seed), names in sorted(stores.items()):
        if len(names) > 1:
            found.append(
                f"on {game} with seed {seed} they were probed on different {kind} ({', '.join(sorted(names))})"
            )
    return found


def _subject(result: Mapping[str, Any]) -> str:
    return str(result["game"] if "game" in result else result["dataset"])


def _subjects(results: Sequence[Mapping[str, Any]]) -> str:
    return "sets" if all("dataset" in result for result in results) else "games"


def _games(found: Mapping[Cell, float]) -> list[str]:
    return sorted({game for game, _ in found})


def _line(row: Row) -> str:
    width = "/".join(map(str, row.width))
    cells = [
        f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
        for value, interval in ((row.mean, row.mean_interval), (row.iqm, row.iqm_interval))
    ]
    difference = ""
    if row.paired is not None:
        paired = row.paired
        difference = f"{paired.difference:+.3f} to {row.versus} (p = {paired.p_value:.3f}, {paired.num_pairs} pairs)"
    front = f"{row.method:<16}{row.num_runs:>5}{row.num_games:>6}{width:>7}"
    return f"{front}  {cells[0]:<22}{cells[1]:<22}{difference}".rstrip()
