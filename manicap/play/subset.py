"""Some episodes of a store, as a store: what was recorded once, divided into play to learn from and play to probe."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator
from manicap.play.store import Integers, Labelling, PlayStore, Rows, StateVariable, Usual

LEARNED_SHARE = 0.6
"""Of the episodes; the others are probed."""


def divided(store: PlayStore) -> tuple["EpisodeSubset", "EpisodeSubset"]:
    """Episodes to learn from and episodes to probe, drawn once and for all."""
    num_episodes = len(store.episodes)
    if num_episodes < 2:
        raise UserError(
            f"{store.path} has one episode only: to learn from some and probe others there must be several; mark where"
            " episodes begin, or record more"
        )
    order = numpy_generator(0, "learn and probe").permutation(num_episodes)
    cut = min(max(1, round(LEARNED_SHARE * num_episodes)), num_episodes - 1)
    return EpisodeSubset(store, np.sort(order[:cut]), "learn"), EpisodeSubset(store, np.sort(order[cut:]), "probe")


class EpisodeSubset:
    """Rows count from 0, in the order of the whole store."""

    def __init__(self, store: PlayStore, episodes: Rows, name: str) -> None:
        self.whole, self.name, self.path = store, name, store.path
        chosen = store.episodes[episodes]
        pieces = [
            np.arange(start, start + length) for start, length in zip(chosen["start"], chosen["length"], strict=True)
        ]
        self.source_rows = np.concatenate(pieces)
        """[n]: the row of the whole store."""
        self.episodes: NDArray[np.void] = chosen.copy()
        self.episodes["start"] = np.concatenate([[0], np.cumsum(chosen["length"])[:-1]])
        self.episodes.flags.writeable = False

    def __len__(self) -> int:
        return len(self.source_rows)

    @property
    def subject(self) -> str:
        return self.whole.subject

    @property
    def usual(self) -> Usual:
        return self.whole.usual

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.whole.fingerprint.encode())
        digest.update(self.source_rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    @cached_property
    def rows(self) -> Rows:
        return np.arange(len(self))

    @property
    def frames(self) -> "_Frames":
        return _Frames(self)

    @property
    def has_colour(self) -> bool:
        return self.whole.has_colour

    def colour_frames(self, rows: Any) -> NDArray[np.uint8]:
        return self.whole.colour_frames(self.source_rows[rows])

    def frame_chunks(self, rows: Rows, size: int = 512) -> Iterator[NDArray[np.uint8]]:
        return self.whole.frame_chunks(self.source_rows[rows], size)

    def labelling(self, name: str) -> Labelling:
        return _Labels(self.whole.labelling(name), self.source_rows)


class _Frames:
    def __init__(self, subset: EpisodeSubset) -> None:
        self._subset = subset

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        return np.asarray(self._subset.whole.frames[self._subset.source_rows[key]])


class _Labels:
    def __init__(self, whole: Labelling, source_rows: Rows) -> None:
        self._whole, self._source_rows = whole, source_rows

    @property
    def name(self) -> str:
        return self._whole.name

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        return self._whole.variables

    def labels(
        self, rows: Rows, names: Sequence[str] | None = None, stale_first: bool = False
    ) -> Mapping[str, Integers]:
        return self._whole.labels(self._source_rows[rows], names, stale_first)

    def values(self, rows: Rows, names: Sequence[str]) -> NDArray[np.float64] | None:
        return self._whole.values(self._source_rows[rows], names)
