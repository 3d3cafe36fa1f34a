"""Labels saved: how many times more labels the same probe needs on a floor, for the score it has on the encoder.

    labels_needed((50, 100, 200), [0.2, 0.4, 0.6], 0.5)       # 141, halfway from 100 to 200 on a logarithmic axis

Read off the two label curves at `AT` labels of the encoder, per variable, then the geometric mean over the variables.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

AT = 200
"""Labels on the encoder that are compared with those on the floor."""
Bound = Literal["", "at least", "at most"]
"""Whether a number is only a bound: the floor never gets there, or is there with the fewest labels tried, in the mean
or in a draw. Then the interval is open on that side."""
Mark = TypeVar("Mark", bound=str)
Floats = NDArray[np.float64]
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t at 97.5 % by degrees of freedom."""


@dataclass(frozen=True)
class Saved:
    """`factor` times as many labels on the floor as on the encoder."""

    factor: float
    low: float | None
    high: float | None
    """95 % interval over draws of the labels; None if there was one draw."""
    bound: Bound

    def __str__(self) -> str:
        return f"{self.bound} {self.factor:.3g} x".strip()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class LabelsSaved:
    at: int
    """Labels on the encoder."""
    overall: Saved
    """Geometric mean over the variables."""
    variables: dict[str, Saved]
    unread: tuple[str, ...]
    """Variables that neither reads with `at` labels: they count as factor 1."""

    @property
    def floor_labels(self) -> float:
        """Labels on the floor that are worth `at` on the encoder."""
        return self.at * self.overall.factor

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LabelsSaved":
        variables = {name: Saved(**found) for name, found in values["variables"].items()}
        return cls(values["at"], Saved(**values["overall"]), variables, tuple(values["unread"]))


def labels_needed(counts: Sequence[int], scores: Sequence[float] | Floats, score: float) -> tuple[float, Bound]:
    """The number of labels at which a curve reaches a score: linear in the logarithm between two counts.

    A curve that falls again stays at its best: nobody has to use more labels than help.
    """
    best = np.maximum.accumulate(np.asarray(scores, np.float64))
    if score <= best[0]:
        return float(counts[0]), "" if score == best[0] else "at most"
    if score > best[-1]:
        return float(counts[-1]), "at least"
    above = int(np.argmax(best >= score))
    low, high = math.log(counts[above - 1]), math.log(counts[above])
    share = (score - best[above - 1]) / (best[above] - best[above - 1])
    return math.exp(low + share * (high - low)), ""


def comparison_count(counts: Sequence[int]) -> int:
    """The count at which curves are compared: `AT`, or the nearest one below if there are fewer labels."""
    return max((count for count in counts if count <= AT), default=counts[0])


def labels_saved(
    counts: Sequence[int], encoder: Floats, floor: Floats, chance: Floats, variables: Sequence[str]
) -> LabelsSaved:
    """From scores [draws, counts, V] of both, and the score of knowing nothing [V].

    A draw has no scores (NaN) at the counts that were drawn once; there the first draw stands for all.
    """
    at = comparison_count(counts)
    place = list(counts).index(at)
    encoder, floor = (np.where(np.isnan(each), each[:1], each) for each in (encoder, floor))
    num_draws = len(encoder)
    logs, saved, unread = np.zeros((num_draws, len(variables))), {}, []
    points, bounds, drawn_bounds = np.zeros(len(variables)), list[Bound](), list[Bound]()
    for v, name in enumerate(variables):
        ours, theirs = encoder.mean(0)[:, v], floor.mean(0)[:, v]
        if ours[place] <= chance[v] and theirs[place] <= chance[v]:
            unread.append(name)
            saved[name] = Saved(1.0, None, None, "")
            continue
        needed, bound = labels_needed(counts, theirs, ours[place])
        drawn = [labels_needed(counts, floor[draw, :, v], encoder[draw, place, v]) for draw in range(num_draws)]
        bounds.append(bound)
        drawn_bounds.append(bound or joined_bound(bound for _, bound in drawn))
        logs[:, v] = np.log([labels / at for labels, _ in drawn])
        points[v] = math.log(needed / at)
        saved[name] = _saved(points[v], logs[:, v], drawn_bounds[-1])
    overall = _saved(float(points.mean()), logs.mean(1), joined_bound(bounds if any(bounds) else drawn_bounds))
    return LabelsSaved(at, overall, saved, tuple(unread))


def joined_bound(bounds: Iterable[Mark]) -> Mark | Literal[""]:
    """Whether a mean is only a bound: it is if some of what it averages are, and all of these alike."""
    sides = {bound for bound in bounds if bound}
    return sides.pop() if len(sides) == 1 else ""


def _saved(point: float, logs: Floats, bound: Bound) -> Saved:
    """A factor with Student's interval of its logarithm over the draws."""
    if len(logs) < 2:
        return Saved(math.exp(point), None, None, bound)
    margin = STUDENT[len(logs) - 1] * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Saved(math.exp(point), math.exp(point - margin), math.exp(point + margin), bound)
