"""Which columns of a grid are worth its whole budget? Successive halving (arXiv 1502.07943).

    for rung in search_grid(grid, finish):      # finish(grid) trains and probes what is left of a grid
        rung.scores                             # by column
        rung.kept                               # the better half, which goes on

All columns are trained for an eighth of the grid's steps, the better half of them for a quarter, and so on: eight
columns cost as much as four whole ones. The runs of a rung are ordinary runs of their own, with a schedule of their own
length, so a search can be stopped and repeated at any time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Annotated

from manicap.bench.grid import Cell, Grid
from manicap.bench.scores import RunScore
from manicap.core.errors import UserError
from manicap.core.ranges import Range
from manicap.domains.run_config import RunConfig
from manicap.probing.labels_saved import AT, comparison_count
from manicap.statistics.scales import LABELS_SAVED

Share = Annotated[float, Range(0, 1, above=True)]
"""Of the steps of a grid."""
SHARES: tuple[Share, ...] = (1 / 8, 1 / 4, 1 / 2, 1.0)
FEW_LABELS = "few_labels"
"""The mean score with 200 labels. Labels saved would compare each column with a floor of its own."""

Finish = Callable[[Grid], Sequence[RunScore]]


@dataclass(frozen=True)
class Rung:
    """The columns that were trained for a share of the budget."""

    share: float
    steps: Mapping[str, int]
    """By column, the best first."""
    scores: Mapping[str, float]
    """By column, the best first: the mean over datasets and seeds; NaN where a run failed."""
    kept: tuple[str, ...]
    """Columns that go on; after the last rung, the best one."""


def search_grid(
    grid: Grid, finish: Finish, metric: str = FEW_LABELS, shares: Sequence[float] = SHARES
) -> Iterator[Rung]:
    """Yield each rung when it is measured."""
    _require_searchable(grid, metric, shares)
    labels = [column.label for column in grid.columns]
    for share, following in zip(shares, (*shares[1:], None), strict=True):
        part = at_share(grid, labels, share)
        found = column_scores(finish(part), labels, len(part.places) // len(labels), metric)
        ranked = sorted(labels, key=lambda label: (math.isnan(found[label]), -found[label]))  # of equals the first
        sound = [label for label in ranked if not math.isnan(found[label])]
        kept = sound[: math.ceil(len(labels) / 2)] if following is not None else sound[:1]
        steps = {cell_label: cell.config.max_steps or 0 for (_, cell_label, _), cell in part.places.items()}
        yield Rung(share, {label: steps[label] for label in ranked}, {x: found[x] for x in ranked}, tuple(kept))
        if not kept:
            raise UserError("no column of the search could be measured; 'manicap bench status' of the grid says why")
        labels = [label for label in labels if label in kept]
        if len(labels) == 1:
            return


def at_share(grid: Grid, labels: Sequence[str], share: float) -> Grid:
    """Some columns of a grid, trained for a share of their steps."""
    places = {
        place: Cell(_shortened(cell.config, share), cell.evaluations)
        for place, cell in grid.places.items()
        if place[1] in labels
    }
    columns = tuple(column for column in grid.columns if column.label in labels)
    baseline = grid.baseline if grid.baseline in labels else labels[0]
    return replace(grid, columns=columns, places=places, file=replace(grid.file, baseline=baseline))


def column_scores(scores: Sequence[RunScore], labels: Sequence[str], num_runs: int, metric: str) -> dict[str, float]:
    """The mean of each column over its datasets and seeds, in the grid's first evaluation; NaN if one is missing."""
    first = next((score.evaluation for score in scores), None)
    found: dict[str, list[float]] = {label: [] for label in labels}
    for score in scores:
        if score.evaluation == first and score.column in found:
            found[score.column].append(_value(score, metric))
    return {label: mean(values) if len(values) == num_runs else math.nan for label, values in found.items()}


def _value(score: RunScore, metric: str) -> float:
    if metric != FEW_LABELS:
        value = score.metrics[metric]
        return math.log(value) if metric == LABELS_SAVED else value
    curve = score.labels.get("encoder")
    if not curve:
        raise UserError(f"the probe {score.probe} has no label curves; choose another metric than {FEW_LABELS}")
    return curve[comparison_count(sorted(curve))]


def _shortened(config: RunConfig, share: float) -> RunConfig:
    if share == 1 or config.max_steps is None:
        return config
    return replace(
        config, max_steps=max(1, round(share * config.max_steps)), warmup_steps=round(share * config.warmup_steps)
    )


def _require_searchable(grid: Grid, metric: str, shares: Sequence[float]) -> None:
    known = (FEW_LABELS, *grid.domain.metrics)
    if metric not in known:
        raise UserError(f"unknown metric {metric!r}; there are {', '.join(known)} ({FEW_LABELS}: with {AT} labels)")
    if not shares or any(not 0 < share <= 1 for share in shares) or list(shares) != sorted(set(shares)):
        raise UserError(f"shares must rise from above 0 to at most 1, got {', '.join(f'{x:g}' for x in shares)}")
    if len(grid.columns) < 2:
        raise UserError(f"a search needs at least two columns, {grid.title} has {len(grid.columns)}")
    if any(cell.config.max_steps is None for cell in grid.cells):
        raise UserError("a search divides max_steps, which some columns do not have: set it in [run]")
