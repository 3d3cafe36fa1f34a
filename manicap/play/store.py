"""What splits, views, training and probes ask of a store of play: one interface for games and environments.

A store holds N frames in the order of play, in episodes that follow one another. What is known about the state of each
frame is a `Labelling`: of a game's RAM there are several, of an environment the one that was recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
VariableKind = Literal["class", "place", "number"]
"""One of several names; a place, where one pixel off is nearly right; a number."""


@dataclass(frozen=True)
class StateVariable:
    """A variable of the state that is to be read off frames."""

    name: str
    kind: VariableKind
    categories: tuple[str, ...]
    """Scores are means over categories; a variable without one does not count."""


class Usual(NamedTuple):
    """How a store is probed unless told otherwise."""

    protocol: str
    annotation_set: str
    colour: bool


class Labelling(Protocol):
    """The state variables of a store's frames."""

    @property
    def name(self) -> str:
        """Of the annotation set: `corrected`, `recorded`."""
        ...

    @property
    def variables(self) -> tuple[StateVariable, ...]: ...

    def labels(
        self, rows: Rows, names: Sequence[str] | None = None, stale_first: bool = False
    ) -> Mapping[str, Integers]:
        """Whole numbers from 0 [n] by variable: classes, whole values, or the bins of a real number.

        With `stale_first` the first frame of an episode has the labels of the step that ended the episode before, as in
        the 2019 code.
        """
        ...

    def values(self, rows: Rows, names: Sequence[str]) -> NDArray[np.float64] | None:
        """[n, V] in the variables' own units, if a label is not its own value; None if all are."""
        ...


class PlayStore(Protocol):
    """A complete store, read-only."""

    path: Path

    def __len__(self) -> int:
        """Number of frames."""
        ...

    @property
    def subject(self) -> str:
        """What was played, in one word."""
        ...

    @property
    def usual(self) -> Usual: ...

    @property
    def fingerprint(self) -> str:
        """12 hex digits that identify the bytes of this store."""
        ...

    @property
    def rows(self) -> Rows:
        """All of them."""
        ...

    @property
    def episodes(self) -> NDArray[np.void]:
        """`start` and `length` [E], in the order of rows."""
        ...

    @property
    def frames(self) -> Any:
        """Gray frames uint8 [N, H, W]; indexing decodes."""
        ...

    @property
    def has_colour(self) -> bool: ...

    def colour_frames(self, rows: Any) -> NDArray[np.uint8]:
        """uint8 [..., H, W, 3]"""
        ...

    def frame_chunks(self, rows: Rows, size: int = 512) -> Iterator[NDArray[np.uint8]]:
        """All that was recorded of the rows' frames, in chunks [n, ...]: equal bytes, equal frames."""
        ...

    def labelling(self, name: str) -> Labelling:
        """The state variables by the name of their annotation set; a `UserError` if there is none."""
        ...
