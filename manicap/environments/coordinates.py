"""Which state variables are coordinates, as given by the user, and where in the frame they are.

    "ball_x:x:0:10"     ball_x is 0 at the left edge of the frame and 10 at its right edge
    "ball_y:y:10:0"     ball_y is 10 at the top and 0 at the bottom

`ball_x` and `ball_y` are the two coordinates of one object, `ball`. Any other name is an object itself.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manicap.core.errors import UserError, unknown_choice
from manicap.environments.labels import Column
from manicap.play.places import AxisMap, PixelMap, object_axis

SHOWN_SHARE = 1 / 16
"""Side of the box around a place, relative to the frame's: the size of the object is not known."""


@dataclass(frozen=True)
class Coordinate:
    """A variable whose values at the two edges of the frame are known."""

    variable: str
    axis: str
    first: float
    """At the left (x) or at the top (y)."""
    last: float
    """At the right (x) or at the bottom (y)."""

    @property
    def object(self) -> str:
        found = object_axis(self.variable)
        return found[0] if found is not None and found[1] == self.axis else self.variable.replace("_", " ")

    def map(self, side: int) -> AxisMap:
        """The map to pixels of a frame with this side, whose first pixel has its centre at 0 and its edge at -1/2."""
        slope = side / (self.last - self.first)
        return AxisMap(self.variable, slope, -self.first * slope - 0.5)


def parse_coordinate(entry: str) -> Coordinate:
    """Parse a coordinate, or raise a `UserError` that says what is wrong."""
    variable, *rest = entry.rsplit(":", 3)
    try:
        axis, first, last = rest[0], float(rest[1]), float(rest[2])
    except (IndexError, ValueError):
        axis, first, last = "", math.nan, math.nan
    if not variable or axis not in ("x", "y") or not math.isfinite(last - first) or first == last:
        raise UserError(
            f"coordinates are written like ball_x:x:0:10, a variable, its axis (x or y) and its values at the left and"
            f" right edges of the frame (or at the top and the bottom), two different numbers; got {entry!r}"
        )
    return Coordinate(variable, axis, first, last)


def coordinate_problems(entries: Iterable[str]) -> list[str]:
    """Mistakes in how coordinates are written, whatever the environment."""
    found, taken = list[str](), dict[tuple[str, str], str]()
    for entry in entries:
        try:
            coordinate = parse_coordinate(entry)
        except UserError as error:
            found.append(str(error))
            continue
        other = taken.setdefault((coordinate.object, coordinate.axis), entry)
        if other is not entry:
            found.append(f"coordinates give the {coordinate.axis} of {coordinate.object} twice: {other}, {entry}")
    return found


def check_variables(entries: Iterable[str], columns: Sequence[Column]) -> list[str]:
    """Mistakes in coordinates: variables that the environment does not have, or that are classes."""
    kinds, found = {column.name: column.kind for column in columns}, list[str]()
    for coordinate in map(parse_coordinate, entries):
        if coordinate.variable not in kinds:
            found.append(f"coordinates: {unknown_choice('state variable', coordinate.variable, kinds)}")
        elif kinds[coordinate.variable] == "class":
            found.append(f"{coordinate.variable} is a class and cannot be a coordinate")
    return found


def pixel_maps(entries: Iterable[str], variables: Sequence[str], height: int, width: int) -> dict[str, PixelMap]:
    """Pixel maps by object, for the coordinates among `variables`, in a frame of this size."""
    objects: dict[str, dict[str, AxisMap]] = {}
    for coordinate in map(parse_coordinate, entries):
        if coordinate.variable in variables:
            side = width if coordinate.axis == "x" else height
            objects.setdefault(coordinate.object, {})[coordinate.axis] = coordinate.map(side)
    return {
        name: PixelMap(axes.get("x"), axes.get("y"), SHOWN_SHARE * width, SHOWN_SHARE * height)
        for name, axes in objects.items()
    }
