"""The state variables of a game, read from the RAM that a store keeps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manicap.atari.annotations import annotations, kind_of, labels
from manicap.atari.games import find_game
from manicap.play.store import Rows, StateVariable

if TYPE_CHECKING:
    from manicap.atari.store import Store


class RamLabels:
    """The variables of an annotation set; every label is a byte, and its own value."""

    def __init__(self, store: "Store", annotation_set: str) -> None:
        self.store, self.name, self.game = store, annotation_set, find_game(store.config.game)
        self.variables = tuple(
            StateVariable(each.name, kind_of(self.game.name, each), each.categories)
            for each in annotations(self.game, annotation_set)
        )

    def labels(
        self, rows: Rows, names: Sequence[str] | None = None, stale_first: bool = False
    ) -> Mapping[str, NDArray[np.uint8]]:
        ram = np.array(self.store.ram[rows])
        if stale_first:
            episodes = self.store.episodes
            episode = np.searchsorted(episodes["start"], rows, side="right") - 1
            first = episodes["start"][episode] == rows
            ram[first] = episodes["ram_before"][episode[first]]
        return labels(ram, self.game, self.name, names)

    def values(self, rows: Rows, names: Sequence[str]) -> None:
        return None
