"""What the tables and figures of a grid consist of; `grid_summary` works it out."""

from collections.abc import Mapping
from dataclasses import dataclass

from manicap.statistics.estimates import Estimate, Interval
from manicap.statistics.scales import Scale

METRICS = {"labels_saved": "labels saved", "r2": "R²", "f1": "F1", "accuracy": "accuracy", "macro_f1": "macro F1"}
"""Titles of the metrics that a report shows, the most important first."""
MEAN_ROW = "mean"


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
    bound: str = ""
    """`at least` or `at most`, if the scores of some runs are only bounds."""

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
    scale: Scale
    """That of its metric."""
    is_transposed: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns with published scores."""
        return tuple(c for c in self.columns if any(self.entries[row, c].published is not None for row in self.rows))


@dataclass(frozen=True)
class Aggregate:
    """A column over all its runs. Means and differences of a ratio are factors."""

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
    """The difference's interval excludes zero (a factor's excludes 1), over enough seeds."""
    bound: str = ""


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
