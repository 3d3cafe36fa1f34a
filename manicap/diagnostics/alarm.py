"""Alarms about collapse, in words, when a measure passes its limit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Limit:
    """A measure's limit, and the sentence to show when it is passed."""

    measure: str
    name: str
    """The measure's name for display."""
    side: Literal["at least", "at most"]
    value: float
    sentence: str

    def is_passed(self, measured: float) -> bool:
        """NaN counts as passed, because it means that there was no variance to measure."""
        return not (measured >= self.value if self.side == "at least" else measured <= self.value)


LIMITS = (
    Limit(
        "effective_rank_centered",
        "centred effective rank",
        "at least",
        3.0,
        "rank collapse: the features vary along {} directions",
    ),
    Limit("spread", "spread", "at least", 0.02, "variance collapse: all samples point the same way, spread {}"),
    Limit("dead_fraction", "fraction of dead units", "at most", 0.9, "dead units: a fraction of {} never changes"),
    Limit(
        "head_cosine", "mean cosine of heads", "at most", 0.98, "similar heads: the mean cosine of their outputs is {}"
    ),
    Limit(
        "usage_entropy",
        "usage entropy of charts",
        "at least",
        0.05,
        "one chart for everything: the usage of the charts has entropy {}",
    ),
)
"""When a representation counts as collapsed. These are our rules of thumb; every alarm prints its limit.

CKA has no limit: wide linear heads that start as different rotations have a CKA near 1 and yet differ.
"""


def collapse_alarms(measured: Mapping[str, float], limits: tuple[Limit, ...] = LIMITS) -> list[str]:
    """One sentence per measure past its limit; what was not measured is not judged."""
    alarms = []
    for limit in limits:
        value = measured.get(limit.measure)
        if value is not None and limit.is_passed(value):
            said = "undefined" if math.isnan(value) else f"{value:.3g}"
            alarms.append(f"{limit.sentence.format(said)} (should be {limit.side} {limit.value:g})")
    return alarms


def within_limits(measured: Mapping[str, float | None], limits: tuple[Limit, ...] = LIMITS) -> str:
    """The sentence without an alarm: `all measures are within their limits: spread 0.41 (at least 0.02), ...`.

    This is no guarantee: a representation may have lost half of its units and still be within every limit.
    """
    told = [
        f"{limit.name} {value:.3g} ({limit.side} {limit.value:g})"
        for limit in limits
        if (value := measured.get(limit.measure)) is not None
    ]
    return f"all measures are within their limits: {', '.join(told)}" if told else "no measure with a limit was taken"
