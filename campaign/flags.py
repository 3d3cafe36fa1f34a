"""Every flag of every command, read off the functions and dataclasses that the command line is made of."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from manicap.cli.main import COMMANDS

Kind = typing.Literal["int", "float", "str", "bool", "path", "choice"]
_KINDS: dict[Any, Kind] = {int: "int", float: "float", str: "str", bool: "bool", Path: "path"}


@dataclass(frozen=True)
class Flag:
    field: str
    """`batch_size`"""
    kind: Kind
    is_list: bool = False
    is_positional: bool = False
    is_optional: bool = False
    """`None` says that it is absent."""

    @property
    def name(self) -> str:
        return "--" + self.field.replace("_", "-")


def flags_of(command: str, words: Sequence[str]) -> list[Flag]:
    """The flags of a command, as they are after these words (a method brings its own)."""
    function: Callable[..., None] = COMMANDS[command].load()
    if hasattr(function, "for_arguments"):
        function = function.for_arguments(list(words))
    hints = typing.get_type_hints(function, include_extras=True)
    found: dict[str, Flag] = {}
    for name in inspect.signature(function).parameters:
        for flag in _flags(name, hints[name]):
            found[flag.field] = flag
    return list(found.values())


def _flags(name: str, hint: Any) -> Iterator[Flag]:
    plain, marks = _without_marks(hint)
    if tyro.conf.Fixed in marks:
        return
    if dataclasses.is_dataclass(plain):
        hints = typing.get_type_hints(plain, include_extras=True)
        for field in dataclasses.fields(plain):
            yield from _flags(field.name, hints[field.name])
        return
    kind, is_list = _kind(plain)
    yield Flag(name, kind, is_list, tyro.conf.Positional in marks, type(None) in typing.get_args(plain))


def _without_marks(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if typing.get_origin(hint) is typing.Annotated:
        inner, *marks = typing.get_args(hint)
        return inner, tuple(marks)
    return hint, ()


def _kind(hint: Any) -> tuple[Kind, bool]:
    hint, _ = _without_marks(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _kind(next(option for option in arguments if option is not type(None)))
    if origin is tuple:
        return _kind(arguments[0])[0], True
    if origin is typing.Literal:
        return "choice", False
    return _KINDS[hint], False
