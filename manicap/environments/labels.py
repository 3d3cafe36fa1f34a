"""The labels of a step, which describe its state: read, checked, and encoded as a row of numbers.

    {"x": 3, "door": "open", "speed": 0.25}     # a whole number, a class, a real number

Whole numbers are stored as int64, real ones as float64, classes as indices of their names.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from manicap.core.errors import UserError, unknown_choice
from manicap.core.ranges import shown
from manicap.core.registry import import_plugin
from manicap.environments.config import DEFAULT_CATEGORY, LOCAL, RecordConfig
from manicap.environments.known import known_labels
from manicap.environments.making import Environment, OwnFunctions, users_code
from manicap.play.store import StateVariable, VariableKind

MAX_CLASSES = 4096
LabelType = Literal["bool", "int", "float", "str"]
PYTHON_TYPES: dict[type, LabelType] = {bool: "bool", int: "int", float: "float", str: "str"}


@dataclass(frozen=True)
class Column:
    """A variable as it is stored."""

    name: str
    type: LabelType
    kind: VariableKind
    categories: tuple[str, ...] = (DEFAULT_CATEGORY,)
    names: tuple[str, ...] = ()
    """Of the classes of a `str` variable, in the order of their indices."""

    @property
    def variable(self) -> StateVariable:
        return StateVariable(self.name, self.kind, self.categories)

    @property
    def dtype(self) -> str:
        return "<f8" if self.type == "float" else "<i8"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Column":
        lists = {name: tuple(map(str, values[name])) for name in ("categories", "names")}
        return cls(str(values["name"]), values["type"], values["kind"], **lists)


def row_dtype(columns: tuple[Column, ...]) -> np.dtype[Any]:
    return np.dtype([(column.name, column.dtype) for column in columns])


class LabelReader:
    """Reads the labels of a step as a dict of plain Python values."""

    def __init__(self, config: RecordConfig, own: OwnFunctions) -> None:
        self._config = config
        self._names = set[str]()  # already checked
        self._function: Callable[..., Any] | None = own.labels
        named = config.labels or ""
        if own.labels is None and named.startswith(LOCAL):
            raise UserError(f"the labels {named} are of the process that recorded them: record in Python again")
        if own.labels is None and ":" in named:
            self._function = import_plugin(named, "labels function")

    def read(self, env: Environment, observation: Any, info: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        """The labels; None if none were requested and the environment has none."""
        labels = self._config.labels
        if self._function is not None:
            with users_code(f"the labels function {labels}", place):
                found = self._function(env, observation, info)
        elif labels == "observation":
            found = self._of_vector(observation, place)
        else:
            found = info.get("labels")
            if found is None and labels is None:
                found = known_labels(env)
                if found is None:
                    return None
        if not isinstance(found, Mapping):
            raise UserError(f"labels must be a dict {place}, got {shown(found)}")
        if not found.keys() <= self._names:
            self._names.update(_checked_name(name, place) for name in found)
        return {name: plain_label(value, name, place) for name, value in found.items()}

    def _of_vector(self, observation: Any, place: str) -> dict[str, Any]:
        if isinstance(observation, dict):
            raise UserError(
                f"labels 'observation' need a vector of numbers, and the observation is a dict of"
                f" {', '.join(map(str, observation))} {place}: give a function of (env, observation, info)"
            )
        vector = np.asarray(observation)
        if vector.ndim != 1 or vector.dtype.kind not in "biuf":
            raise UserError(
                f"labels 'observation' need a vector of numbers, and the observation is {vector.dtype}"
                f" {list(vector.shape)} {place}: give a function of (env, observation, info)"
            )
        names = self._config.label_names or tuple(f"observation_{index}" for index in range(len(vector)))
        if len(names) != len(vector):
            raise UserError(f"the observation has {len(vector)} entries {place}, and label_names has {len(names)}")
        return dict(zip(names, vector, strict=True))


def choose_columns(first: Mapping[str, Any], config: RecordConfig) -> tuple[Column, ...]:
    """How each variable of the first step is stored: by its type, and by the kind and category that the user gives."""
    for names in (config.kinds, config.categories):
        for name in names:
            if name not in first:
                raise unknown_choice("label", name, first)
    columns = []
    for name, value in first.items():
        type_ = PYTHON_TYPES[type(value)]
        kind = cast(VariableKind, config.kinds.get(name, "class" if type_ in ("bool", "str") else "number"))
        if (type_ == "str" and kind != "class") or (type_ == "float" and kind == "class"):
            raise UserError(f"the label {name!r} is of type {type_} and cannot be of kind {kind}")
        columns.append(Column(name, type_, kind, (config.categories.get(name, DEFAULT_CATEGORY),)))
    return tuple(columns)


class LabelEncoder:
    """Encodes the labels of one lane; the classes of a `str` variable are numbered in order of appearance."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self.classes: dict[str, dict[str, int]] = {column.name: {} for column in columns if column.type == "str"}

    def encode(self, found: Mapping[str, Any] | None, place: str) -> tuple[float, ...]:
        """A row of `row_dtype`."""
        found = {} if found is None else found
        if len(found) > len(self._columns):
            new = next(name for name in found if name not in {column.name for column in self._columns})
            raise UserError(f"the label {new!r} is new {place}: every step must have the same labels, reset() included")
        return tuple(self._value(column, found, place) for column in self._columns)

    def _value(self, column: Column, found: Mapping[str, Any], place: str) -> float:
        if column.name not in found:
            raise UserError(f"the label {column.name!r} is missing {place}: every step must have the same labels")
        value = found[column.name]
        type_ = PYTHON_TYPES[type(value)]
        if type_ != column.type:
            raise UserError(
                f"the label {column.name!r} is {shown(value)} of type {type_} {place}, and was of type {column.type} at"
                " the first step: convert it in the labels function"
            )
        if type_ == "str":
            known = self.classes[column.name]
            index = known.setdefault(value, len(known))
            if len(known) > MAX_CLASSES:
                raise too_many_classes(column)
            return index
        if type_ == "float" and not math.isfinite(value):
            raise UserError(f"the label {column.name!r} is {value} {place}")
        return cast(float, value)


def too_many_classes(column: Column) -> UserError:
    advice = "give numbers" if column.type == "str" else f"mark it as a number (label_kinds '{column.name}:number')"
    return UserError(f"the label {column.name!r} has more than {MAX_CLASSES:,} classes: {advice}")


def _checked_name(name: Any, place: str) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise UserError(f"labels must have names, got {shown(name)} {place}")
    return name


def plain_label(value: Any, name: Any, place: str) -> bool | int | float | str:
    """The plain Python value; NumPy's scalars and arrays of one entry are converted."""
    if type(value) in (bool, float, str):
        return cast(bool | float | str, value)
    if isinstance(value, np.generic | np.ndarray) and value.size == 1:
        value = value.item()
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise UserError(f"the label {name!r} is {shown(value)} {place}, which int64 cannot hold")
    if type(value) not in PYTHON_TYPES:
        raise UserError(
            f"the label {name!r} is {shown(value)} ({type(value).__name__}) {place}: it must be a bool, an int, a"
            " float or a str"
        )
    plain: bool | int | float | str = value
    return plain
