"""Names of functions given in Python: import paths where other processes can import them, otherwise the user's name."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from manicap.core.errors import UserError
from manicap.core.ranges import PathComponent, shown
from manicap.environments.config import LOCAL
from manicap.environments.making import OwnFunctions


def named(
    given: Mapping[str, str | Callable[..., Any] | None], name: str | None
) -> tuple[dict[str, Any], OwnFunctions]:
    """Fields of a config, and the functions that exist only in this process."""
    names: dict[str, Any] = {}
    own: dict[str, Callable[..., Any]] = {}
    for field, value in given.items():
        if value is None or isinstance(value, str):
            names[field] = value
        elif (path := import_path(value)) is not None:
            names[field] = path
        else:
            names[field] = f"{LOCAL}{_checked(name, field, value)}"
            own[field] = value
    if name is not None and not own:
        raise UserError("name is for functions that cannot be imported, and all of these can: leave it out")
    return names, OwnFunctions(**own)


def import_path(function: Any) -> str | None:
    """`module:name` by which another process can import a function; None if there is none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None or name is None or module == "__main__" or "<" in name:
        return None
    try:
        found: Any = sys.modules.get(module) or import_module(module)
    except ImportError:  # the code was executed from a string
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is function else None


def importable(value: Any, field: str) -> Any:
    """The import path of a function; other values as they are."""
    if not callable(value):
        return value
    path = import_path(value)
    if path is None:
        raise UserError(
            f"the {field} {getattr(value, '__qualname__', value)} cannot be imported by other processes: define it in a"
            " module, or record it yourself (manicap.record(..., name='...')) and learn from that store"
        )
    return path


def _checked(name: str | None, field: str, function: Any) -> str:
    if not callable(function):
        raise UserError(f"{field} must be a name or a function, got {shown(function)}")
    if name is None:
        raise UserError(
            f"the {field} {getattr(function, '__qualname__', function)} cannot be imported by other processes: define"
            " it in a module and give that function or 'package.module:function', or give name='...' to record it in"
            " this process under that name"
        )
    if (problem := PathComponent().problem(name)) is not None:
        raise UserError(f"name {problem}, got {shown(name)}")
    return name
