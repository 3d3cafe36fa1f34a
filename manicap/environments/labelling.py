"""Labels of a store's rows: the recorded state, or what was played."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import unknown_choice
from manicap.environments.labels import Column
from manicap.play.store import Integers, Rows, StateVariable

NUM_BINS = 10
"""Number of bins of a real number, split at its quantiles."""

MOST_VALUES = 4096
"""A whole number with a smaller range than this is labelled value by value."""
PLAY_CATEGORY = "play"


class RecordedLabels:
    """The state variables recorded from the environment."""

    name = "recorded"

    def __init__(self, columns: tuple[Column, ...], table: NDArray[np.void], episodes: NDArray[np.void]) -> None:
        self._columns = {column.name: column for column in columns}
        self._table, self._episodes = table, episodes

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        return tuple(column.variable for column in self._columns.values())

    def class_names(self, name: str) -> tuple[str, ...]:
        """Names of a variable's classes, in the order of its labels; empty if it is a number or a place."""
        column = self._column(name)
        if column.kind != "class":
            return ()
        return column.names or tuple(map(str, self._distinct(name).astype(bool if column.type == "bool" else int)))

    def labels(
        self, rows: Rows, names: Sequence[str] | None = None, stale_first: bool = False
    ) -> Mapping[str, Integers]:
        """Classes and whole numbers counted from the smallest that occurs; other numbers as bins of equal frequency.

        With `stale_first`, the first frame of an episode has the labels of the row before; that of a lane has its own.
        """
        rows = np.asarray(rows)
        if stale_first:
            rows = rows - np.isin(rows, self._later_starts)
        return {name: self._counted(self._column(name))[rows] for name in names or self._columns}

    def values(self, rows: Rows, names: Sequence[str]) -> NDArray[np.float64] | None:
        """[n, V] in the variables' own units; a class is its label. None if every label is its own value."""
        columns = [self._column(name) for name in names]
        if all(self._is_own_value(column) for column in columns):
            return None
        chosen = [self._counted(each) if each.kind == "class" else self._table[each.name] for each in columns]
        return np.stack([column[rows] for column in chosen], axis=-1).astype(np.float64)

    def as_given(self, rows: Rows) -> dict[str, NDArray[Any]]:
        """Values of all variables: bools, numbers, and the names of classes as text."""
        found: dict[str, NDArray[Any]] = {}
        for name, column in self._columns.items():
            values = self._table[name][rows]
            found[name] = np.array(column.names)[values] if column.names else values
            if column.type == "bool":
                found[name] = values.astype(bool)
        return found

    def _is_own_value(self, column: Column) -> bool:
        return column.kind == "class" or (not self._is_binned(column) and self._table[column.name].min() == 0)

    def _is_binned(self, column: Column) -> bool:
        """True for real numbers, and for whole numbers whose range is too large to label value by value."""
        if column.kind == "class":
            return False
        values = self._table[column.name]
        return column.type == "float" or int(values.max()) - int(values.min()) >= MOST_VALUES  # int64 could overflow

    def _counted(self, column: Column) -> NDArray[np.int64]:
        """Labels [N]."""
        if column.name not in self._labels:
            values = self._table[column.name]
            if self._is_binned(column):
                found = np.searchsorted(bin_edges(values), values, side="right")
            elif column.kind == "class":
                found = values if column.type == "str" else np.searchsorted(self._distinct(column.name), values)
            else:
                found = values - values.min()
            self._labels[column.name] = found.astype(np.int64)
        return self._labels[column.name]

    @cached_property
    def _labels(self) -> dict[str, NDArray[np.int64]]:
        return {}

    @cached_property
    def _later_starts(self) -> Rows:
        """First rows of episodes that are not the first of their lane."""
        follows = self._episodes["lane"][1:] == self._episodes["lane"][:-1]
        return self._episodes["start"][1:][follows]

    def _distinct(self, name: str) -> NDArray[np.int64]:
        return np.unique(self._table[name])

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            raise unknown_choice("state variable", name, self._columns)
        return self._columns[name]


class PlayLabels:
    """What was played, as labels that need no annotation.

    `next_action` is the action played from a row, `reward_sign` (0, 1, 2: negative, none, positive) the sign of its
    reward. Nothing was played from the last row of a lane: it has the labels of the row before.
    """

    name = "play"

    def __init__(
        self, actions: NDArray[np.int64] | None, rewards: NDArray[np.float64] | None, episodes: NDArray[np.void]
    ) -> None:
        self._table: dict[str, NDArray[np.int64]] = {}
        if rewards is not None:
            self._table["reward_sign"] = np.sign(rewards).astype(np.int64) + 1
        if actions is not None:
            self._table["next_action"] = actions.copy()
        starts = episodes["start"][np.r_[True, episodes["lane"][1:] != episodes["lane"][:-1]]]
        lasts = np.r_[starts[1:], episodes["start"][-1] + episodes["length"][-1]] - 1
        for column in self._table.values():
            column[lasts] = column[np.maximum(lasts - 1, starts)]

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        return tuple(StateVariable(name, "class", (PLAY_CATEGORY,)) for name in self._table)

    def labels(
        self, rows: Rows, names: Sequence[str] | None = None, stale_first: bool = False
    ) -> Mapping[str, Integers]:
        """Labels of the rows. `stale_first` changes nothing: what follows a row does not become stale."""
        for name in names or ():
            if name not in self._table:
                raise unknown_choice("state variable", name, self._table)
        return {name: self._table[name][rows] for name in names or self._table}

    def values(self, rows: Rows, names: Sequence[str]) -> None:
        return None


def bin_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where bins of equal frequency begin, except the first: values that occur; fewer bins where values repeat."""
    found = np.unique(np.quantile(values, np.arange(1, NUM_BINS) / NUM_BINS, method="higher"))
    return found[found > values.min()]
