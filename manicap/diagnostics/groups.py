"""The capacity of groups of samples that share a label, by three measures, as `diagnose` stores it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from manicap.diagnostics.collapse import neural_collapse
from manicap.diagnostics.effective_geometry import Glue, glue
from manicap.diagnostics.manifolds import as_manifolds, group_without_centre
from manicap.diagnostics.mean_field import manifold_capacity
from manicap.diagnostics.trend import CapacityTrend, capacity_trend

GLUE_DRAWS, TREND_DRAWS = 60, 40


@dataclass(frozen=True)
class GroupCapacity:
    """Measures of the manifolds of one variable, or of the classes."""

    capacity: float
    """By mean-field theory, corrected for correlated centres."""
    radius: float
    dimension: float
    manifolds: int
    shared: int
    """Directions that the centres share."""
    neural_collapse: float
    glue: Glue
    trend: CapacityTrend

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        trend: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in values["trend"].items()}
        rest = {name: x for name, x in values.items() if name not in ("glue", "trend")}
        return cls(**rest, glue=Glue(**values["glue"]), trend=CapacityTrend(**trend))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def measures(self) -> dict[str, float]:
        """By the names under which they are tabulated; a limit only if there is one."""
        limit = {} if self.trend.limit is None else {"glue_limit": self.trend.limit}
        return limit | {
            "manifold_capacity": self.capacity,
            "manifold_radius": self.radius,
            "manifold_dimension": self.dimension,
            "glue_capacity": self.glue.capacity,
            "glue_dimension": self.glue.dimension,
            "glue_radius": self.glue.radius,
            "glue_utility": self.glue.utility,
            "glue_centre_alignment": self.glue.centre_alignment,
            "glue_axis_alignment": self.glue.axis_alignment,
            "neural_collapse": self.neural_collapse,
        }


def measure_groups(groups: Sequence[NDArray[Any]], generator: np.random.Generator) -> GroupCapacity | None:
    """Mean-field capacity, GLUE, its trend and neural collapse of groups of samples, one array [samples, D] each.

    None if some group is centred on the mean of all, as with features that have collapsed: it has no capacity.
    """
    if group_without_centre(as_manifolds(groups)) is not None:
        return None
    mean_field = manifold_capacity(groups, generator)
    return GroupCapacity(
        capacity=mean_field.capacity,
        radius=mean_field.radius,
        dimension=mean_field.dimension,
        manifolds=len(groups),
        shared=mean_field.shared,
        neural_collapse=neural_collapse(groups),
        glue=glue(groups, generator, num_draws=GLUE_DRAWS),
        trend=capacity_trend(groups, generator, num_draws=TREND_DRAWS),
    )


def mean_measures(found: Mapping[str, GroupCapacity]) -> dict[str, float]:
    """The mean over variables of each measure."""
    tables = [each.measures() for each in found.values()]
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: float(np.mean([table[name] for table in tables if name in table])) for name in names}
