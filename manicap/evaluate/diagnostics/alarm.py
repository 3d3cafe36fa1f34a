"""Collapse, in words, when a measure passes a stated limit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Limit:
    """A measure's limit, and the sentence when it is passed."""

    measure: str
    side: Literal["at least", "at most"]
    value: float
    sentence: str

    def is_passed(self, measured: float) -> bool:
        """NaN counts as passed: it means that there was no variance to measure."""
        return not (measured >= self.value if self.side == "at least" else measured <= self.value)


LIMITS = (
    Limit("effective_rank_centered", "at least", 3.0, "rank collapse: the features vary along {} directions"),
    Limit("spread", "at least", 0.02, "variance collapse: all samples point the same way, spread {}"),
    Limit("dead_fraction", "at most", 0.9, "dead units: a share of {} never changes"),
    Limit("head_cosine", "at most", 0.98, "heads alike: the mean cosine of their outputs is {}"),
    Limit("usage_entropy", "at least", 0.05, "one chart for everything: the usage of the charts has entropy {}"),
)
"""Where a representation counts as collapsed. Rules of thumb of ours; every alarm prints its limit.

CKA has none: wide linear heads that start as different rotations have a CKA near 1 and say different things.
"""


def collapse_alarms(measured: Mapping[str, float], limits: tuple[Limit, ...] = LIMITS) -> list[str]:
    """A sentence for every measure past its limit; what was not measured is not judged."""
    alarms = []
    for limit in limits:
        value = measured.get(limit.measure)
        if value is not None and limit.is_passed(value):
            said = "undefined" if math.isnan(value) else f"{value:.3g}"
            alarms.append(f"{limit.sentence.format(said)} (should be {limit.side} {limit.value:g})")
    return alarms
