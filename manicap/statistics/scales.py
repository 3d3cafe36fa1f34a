"""On which scale a metric is averaged, compared and shown. This is the only place that knows which metrics are ratios.

    scale = scale_of("labels_saved")
    scale.back(mean(scale.values([2, 8])))      # 4: a factor of 8 and one of 2 are as far from 4
    scale.text(12.34)                           # "12.3 x"

Labels saved are a ratio: saving 4 x on one game and needing 4 x as many on another is no gain. So all statistics are
those of the logarithm, and are shown as factors. Other metrics are taken as they are.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manicap.statistics.estimates import Estimate, Floats, Interval, PairedTest

RATIOS = frozenset({"labels_saved"})
LABELS_SAVED, R2 = "labels_saved", "r2"


@dataclass(frozen=True)
class Scale:
    is_ratio: bool

    @property
    def neutral(self) -> float:
        """The score that means nothing is gained, and the difference between equals."""
        return 1.0 if self.is_ratio else 0.0

    def values(self, scores: Iterable[float]) -> Floats:
        """Scores as statistics are taken of them: their logarithms, if they are ratios."""
        found = np.array(list(scores), np.float64)
        return np.log(found) if self.is_ratio else found

    def back(self, value: float) -> float:
        """The inverse of `values`; of a difference of logarithms, a factor."""
        return math.exp(value) if self.is_ratio else float(value)

    def interval(self, found: Interval | None) -> Interval | None:
        return None if found is None else Interval(self.back(found.low), self.back(found.high))

    def estimate(self, found: Estimate) -> Estimate:
        return Estimate(self.back(found.value), Interval(self.back(found.interval.low), self.back(found.interval.high)))

    def paired(self, found: PairedTest) -> PairedTest:
        return replace(found, difference=self.back(found.difference))

    def text(self, value: float, interval: Interval | None = None) -> str:
        """`0.712 [0.650, 0.770]` or `12.3 x [8.1, 18.9]`; an interval that is a point is not shown."""
        number, unit = (_factor, " x") if self.is_ratio else (_share, "")
        shown = f"{number(value)}{unit}"
        if interval is None or interval.low == interval.high:
            return shown
        return f"{shown} [{number(interval.low)}, {number(interval.high)}]"

    def difference_text(self, value: float, interval: Interval | None = None) -> str:
        """`+0.100 [+0.050, +0.150]` or `x 1.4 [1.1, 1.8]`."""
        if self.is_ratio:
            return f"x {self.text(value, interval).replace(' x', '', 1)}"
        if interval is None or interval.low == interval.high:
            return f"{value:+.3f}"
        return f"{value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"

    def spread_text(self, value: float, deviation: float | None) -> str:
        """`0.843 ± 0.012` or `12.3 ×÷ 1.4`: a factor's deviation is a factor."""
        if deviation is None:
            return self.text(value)
        return f"{_factor(value)} ×÷ {_factor(deviation)}" if self.is_ratio else f"{value:.3f} ± {deviation:.3f}"


def scale_of(metric: str) -> Scale:
    return Scale(metric in RATIOS)


def order_metrics(metrics: Sequence[str], measured: Collection[str]) -> list[str]:
    """Those of a domain's metrics that were measured, the most important first.

    A probe without label curves does not regress: R2 of its exact values comes last, and F1 before it.
    """
    found = [name for name in metrics if name in measured]
    if R2 in found and LABELS_SAVED not in found:
        found.remove(R2)
        found.append(R2)
    return found


def _share(value: float) -> str:
    return f"{value:.3f}"


def _factor(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
