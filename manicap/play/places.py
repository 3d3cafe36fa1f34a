"""Where objects are drawn: maps from values of state variables to pixels, and which variables are one object's."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Axis = Literal["x", "y"]
_AXIS = re.compile(r"(?:^|_)([xy])(\d*)(?=_|$)")


@dataclass(frozen=True)
class AxisMap:
    """`slope * value + intercept` is a pixel column (x) or row (y). Without a variable the object does not move."""

    variable: str | None
    slope: float
    intercept: float

    def at(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return self.slope * values.astype(np.float64) + self.intercept


@dataclass(frozen=True)
class PixelMap:
    """Where the centre of an object is drawn. An axis that is not known is None."""

    x: AxisMap | None
    y: AxisMap | None
    width: float
    """Extent in pixels; for an unknown axis, that of the whole frame."""
    height: float


def object_axis(variable: str) -> tuple[str, str] | None:
    """The object and the axis that a name tells: `ball_x` ("ball", "x"), `enemy_x_3` ("enemy 3", "x"); None if none."""
    match = _AXIS.search(variable)
    if match is None:
        return None
    stem = f"{variable[: match.start()]}_{match.group(2)}{variable[match.end() :]}"
    return re.sub(" +", " ", stem.replace("_", " ")).strip() or "object", match.group(1)


def object_axes(variables: Iterable[str]) -> dict[str, dict[str, str]]:
    """Names paired by object: `ball_x`, `ball_y` give {"ball": {"x": "ball_x", "y": "ball_y"}}."""
    objects: dict[str, dict[str, str]] = {}
    for name in variables:
        if (found := object_axis(name)) is not None:
            objects.setdefault(found[0], {})[found[1]] = name
    return objects
