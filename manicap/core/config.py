"""Configs: frozen dataclasses, TOML in and out, a stable hash.

    @dataclass(frozen=True)
    class StoreConfig:
        game: str
        steps: Count = 100_000

    write_toml(path, config);  read_toml(path, StoreConfig);  config_hash(config)

Every number has a range (`core.ranges`), and a config may define `problems(self) -> list[str]` for checks that involve
several fields. All problems of a file (unknown keys, wrong types, values out of range, the config's own) are reported
together in one `UserError`.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import tomli_w

from manicap.core.errors import UserError, unknown_choice
from manicap.core.files import atomic_write
from manicap.core.ranges import LARGEST_BITS, LONGEST_SHOWN, Check, shown
from manicap.core.reading import read_toml_table
from manicap.core.registry import Known

Config = TypeVar("Config")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


NONE = "none"
"""A None in a file, where leaving the field out would mean its default."""


def to_dict(config: Any) -> dict[str, Any]:
    """Plain nested dict. TOML has no null: a None that is the default is omitted, another one is written as "none"."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = [(field, getattr(value, field.name)) for field in dataclasses.fields(value)]
            kept = [(field, item) for field, item in fields if item is not None or field.default is not None]
            return {field.name: NONE if item is None else plain(item) for field, item in kept}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, Path):
            return str(value)
        return value

    return typing.cast(dict[str, Any], plain(config))


def config_hash(config: Any) -> str:
    """12 hex digits of the sha256 of the config's canonical JSON: a name for what the config asks for."""
    canonical = json.dumps(to_dict(config), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def write_toml(path: Path, config: Any) -> None:
    atomic_write(path, tomli_w.dumps(to_dict(config)).encode())


def read_toml(path: Path, cls: type[Config]) -> Config:
    return from_dict(cls, read_toml_table(path, "config file"), source=str(path))


def from_dict(cls: type[Config], values: Mapping[str, Any], source: str = "config") -> Config:
    """Build a config, or raise one `UserError` with every problem found."""
    problems: list[str] = []
    config = _build(cls, values, "", problems)
    if not problems:
        problems += config_problems(config, "")
    if problems:
        raise UserError(f"{source}: " + "; ".join(problems))
    return typing.cast(Config, config)


def config_problems(config: Any, prefix: str | None = None) -> list[str]:
    """Fields of a wrong type or out of range, in the config and in nested ones, and what their `problems()` report.

    With a prefix, fields are named by their place in a file (`settings.units`), otherwise like flags (`units`).
    """
    found: list[str] = []
    hints = _hints(typing.cast(Hashable, type(config)))
    for field in dataclasses.fields(config):
        found += value_problems(hints[field.name], getattr(config, field.name), field.name, prefix)
    # Its own check may rely on types, which Python does not enforce.
    if hasattr(config, "problems") and not any(_WRONG_TYPE in problem for problem in found):
        found += config.problems()
    return list(dict.fromkeys(found))


def value_problems(hint: Any, value: Any, name: str, prefix: str | None = None) -> list[str]:
    """What is wrong with a value for a field or an argument declared with `hint`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    place = f"{prefix or ''}{name}"
    if origin is typing.Annotated:
        found = value_problems(arguments[0], value, name, prefix)
        for check in arguments[1:] if not found and value is not None else ():
            found += check.problems(value) if isinstance(check, Known) else []
            problem = check.problem(value) if isinstance(check, Check) else None
            found += [f"{place} {problem}, got {shown(value)}"] if problem else []
        return found
    if origin in (typing.Union, types.UnionType):
        attempts = [value_problems(option, value, name, prefix) for option in arguments]
        # Most unions are with None: the other option says what is wrong with a number.
        return [] if [] in attempts else attempts[0]
    if origin is typing.Literal:
        return [] if value in arguments else [_unknown(place, value, arguments)]
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return [f"{place} {_WRONG_TYPE} tuple, got {shown(value)}"]
        hints = _item_hints(arguments, len(value))
        if hints is None:
            return [f"{place} must have {len(arguments)} values, got {len(value)}"]
        return [p for i, item in enumerate(value) for p in value_problems(hints[i], item, f"{name}[{i}]", prefix)]
    if dataclasses.is_dataclass(hint) and isinstance(value, typing.cast(type, hint)):
        return config_problems(value, None if prefix is None else f"{place}.")
    if hint is float and type(value) is not bool and isinstance(value, int | float):
        return [] if abs(value) < math.inf else [f"{place} must be a finite number, got {value}"]
    if hint in _PLAIN and not _is_plain(value, hint):
        kind = "" if type(value).__module__ == "builtins" else f" ({type(value).__name__})"  # NumPy's 3 is not an int
        return [f"{place} {_WRONG_TYPE} {hint.__name__}, got {shown(value)}{kind}"]
    return []


def check_config(config: Any) -> None:
    """Raise one `UserError` with all problems of a config built in Python or by the command line."""
    problems = config_problems(config)
    if problems:
        raise UserError("; ".join(problems))


def check_arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise one `UserError` with all problems of the arguments of a call, and of the configs among them."""
    hints = _hints(function)
    problems = [problem for name, value in values.items() for problem in value_problems(hints[name], value, name)]
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)))


def checked(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator for a public function: checks the types and ranges of its arguments before calling it."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        given = signature.bind(*arguments, **options).arguments
        hints = _hints(function)
        check_arguments(function, {name: value for name, value in given.items() if name in hints})
        return function(*arguments, **options)

    return call


_PLAIN = (bool, int, float, str, type(None))
_WRONG_TYPE = "must be of type"


def _unknown(name: str, value: Any, choices: tuple[Any, ...]) -> str:
    given = value if isinstance(value, str) and len(value) <= LONGEST_SHOWN else shown(value)
    return str(unknown_choice(name, given, map(str, choices)))


def _is_plain(value: Any, hint: type) -> bool:
    """Whether a value is of the type. True is not an int, nor is a number too long to print (2 to the 20,000)."""
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= LARGEST_BITS
    return isinstance(value, hint)


@functools.lru_cache(maxsize=256)
def _hints(cls: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(typing.cast(type, cls), include_extras=True)


def _item_hints(arguments: tuple[Any, ...], count: int) -> tuple[Any, ...] | None:
    """Types of a tuple's items; None if the tuple must have a different length."""
    if arguments[-1] is Ellipsis:
        return arguments[:1] * count
    return arguments if len(arguments) == count else None


def _build(cls: Any, values: Mapping[str, Any], prefix: str, problems: list[str]) -> Any:
    hints = _hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in values:
        if key not in fields:
            problems.append(str(unknown_choice("key", prefix + key, [prefix + name for name in fields])))
    arguments: dict[str, Any] = {}
    for name, field in fields.items():
        if name in values:
            arguments[name] = _convert(hints[name], values[name], prefix + name, problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{prefix}{name} is required")
    return None if problems else cls(**arguments)


def _convert(hint: Any, value: Any, name: str, problems: list[str]) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _convert(arguments[0], value, name, problems)
    if origin is typing.Literal:
        if value not in arguments:
            problems.append(_unknown(name, value, arguments))
        return value
    if origin in (typing.Union, types.UnionType):
        return _convert_union(arguments, value, name, problems)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            problems.append(f"{name} must be a table, got {shown(value)}")
            return None
        return _build(hint, value, name + ".", problems)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            problems.append(f"{name} must be a list, got {shown(value)}")
            return None
        hints = _item_hints(arguments, len(value))
        if hints is None:
            problems.append(f"{name} must have {len(arguments)} values, got {len(value)}")
            return None
        return tuple(_convert(hints[i], item, f"{name}[{i}]", problems) for i, item in enumerate(value))
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and type(value) is int and abs(value) < 2**1023:
        return float(value)
    if type(value) is not hint or (hint in _PLAIN and not _is_plain(value, hint)):
        problems.append(f"{name} must be {hint.__name__}, got {shown(value)}")
    return value


def _is_a_name(option: Any) -> bool:
    """Whether "none" is an ordinary value of the option: of any text, or of names in a registry that has it."""
    hint, *checks = typing.get_args(option) if typing.get_origin(option) is typing.Annotated else (option,)
    return hint is str and all(not isinstance(check, Known) or NONE in check.registry for check in checks)


def _convert_union(options: tuple[Any, ...], value: Any, name: str, problems: list[str]) -> Any:
    """The first option that accepts the value; among several dataclasses, the one whose keys match."""
    if value == NONE and type(None) in options and not any(map(_is_a_name, options)):
        return None
    attempts: list[list[str]] = []
    for option in options:
        if option is type(None):
            continue
        attempt: list[str] = []
        result = _convert(option, value, name, attempt)
        if not attempt:
            return result
        attempts.append(attempt)
    fewest: list[str] = sorted(attempts, key=len)[0]
    problems += fewest
    return None
