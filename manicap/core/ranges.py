"""What a number, a list or a name in a config may be, declared with its type.

    @dataclass(frozen=True)
    class MySettings(Settings):
        units: Width = 256
        epsilon: NonNegative = 5e-4
        momentum: Annotated[float, Range(0, 1)] = 0.99

`core.config.config_problems` checks every field, and rejects NaN and infinity. A number without a range fails
`tests/core/test_ranges.py`. The upper bounds are far above any practical value: they catch a typo before it becomes an
allocation.
"""

import math
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

LONGEST_SHOWN = 80
LONGEST_PATH_SHOWN = 400
"""Long, so that a path can be copied."""
LARGEST_BITS = 128
"""Bits of an integer; a larger one is described rather than quoted."""
LONGEST_COMPONENT = 100
LONGEST_NAME = 200
"""Bytes of a run's name: file systems allow 255, and scratch files add a prefix."""


@runtime_checkable
class Check(Protocol):
    """Metadata of `Annotated` that says what is wrong with a value."""

    def problem(self, value: Any) -> str | None:
        """`must be at least 1`, or None for a valid value."""
        ...


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; `above` excludes `low`."""

    low: float
    high: float
    above: bool = False

    def problem(self, value: Any) -> str | None:
        if value < self.low or (self.above and value == self.low):
            if self.low == 0:
                return "must be positive" if self.above else "must not be negative"
            return f"must be {'more than' if self.above else 'at least'} {_number(self.low)}"
        if value > self.high:
            return f"must be at most {_number(self.high)}"
        return None


@dataclass(frozen=True)
class Distinct:
    """At least one item, and no duplicates."""

    def problem(self, value: Any) -> str | None:
        if not value:
            return "must not be empty"
        return "must not repeat a value" if len(set(value)) < len(value) else None


@dataclass(frozen=True)
class PathComponent:
    """The name of one directory: it cannot point outside its parent, and can be typed and printed."""

    def problem(self, value: Any) -> str | None:
        if not value or value.strip() != value:
            return "must be a name, without spaces around it"
        if "/" in value or "\\" in value:
            return "must be one name, without / or \\"
        if value.startswith((".", "-")):
            return f"must not begin with {value[0]!r}"
        if not all(map(_printable, value)):
            return "must consist of printable characters"
        if len(value.encode()) > LONGEST_NAME:
            return f"must be at most {LONGEST_NAME} bytes long"
        return None


Count = Annotated[int, Range(1, 10**9)]
"""Steps, epochs, frames, images."""
BatchSize = Annotated[int, Range(2, 10**6)]
"""At least 2: losses and batch normalisation compare samples with each other."""
PlaySteps = Annotated[int, Range(8, 10**9)]
"""Steps of play for a probe: at least one for each of its 8 lanes."""
Lanes = Annotated[int, Range(1, 1024)]
"""Games played side by side."""
Width = Annotated[int, Range(1, 2**16)]
"""Units of a layer."""
HeadCount = Annotated[int, Range(1, 1024)]
Side = Annotated[int, Range(1, 4096)]
"""Side of an image in pixels."""
Seed = Annotated[int, Range(0, 2**63 - 1)]
Threads = Annotated[int, Range(1, 1024)]
"""CPU threads, or worker processes. With more, torch has been seen to crash with a segmentation fault."""
Positive = Annotated[float, Range(0, 1e12, above=True)]
NonNegative = Annotated[float, Range(0, 1e12)]
"""Rates and weights. float32 ends at 3e38, and the product of a few factors gets there sooner."""
VoteTemperature = Annotated[float, Range(0.02, 1e6)]
"""Temperature of nearest neighbours: the sum of exp(cosine / temperature) over all must be finite in float32."""
Fraction = Annotated[float, Range(0, 1)]
Seeds = Annotated[tuple[Seed, ...], Distinct()]
RunName = Annotated[str, PathComponent()]


def component(text: str, otherwise: str) -> str:
    """Any text as the name of one directory; text that `PathComponent` allows is unchanged."""
    name = "".join(letter if _printable(letter) and letter not in "/\\" else "_" for letter in text).lstrip(".- ")
    name = name.encode(errors="replace")[:LONGEST_COMPONENT].decode(errors="ignore").rstrip()
    return name or otherwise


def shown(value: Any) -> str:
    """A value as quoted in a message: short, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > LARGEST_BITS:
        # Python refuses to print integers with more than 4,300 digits.
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    text = str(value)
    if isinstance(value, str | bytes) or not text.isprintable():
        text = repr(value if isinstance(value, str | bytes) else text)
    longest = LONGEST_PATH_SHOWN if isinstance(value, Path) else LONGEST_SHOWN
    return text if len(text) <= longest else f"{text[:longest]}..."


def _printable(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CZ" or character == " "


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
