"""Configs: frozen dataclasses, TOML in and out, a stable hash.

    @dataclass(frozen=True)
    class StoreConfig:
        game: str
        steps: int = 100_000

    write_toml(path, config);  read_toml(path, StoreConfig);  config_hash(config)

A config may define `problems(self) -> list[str]`. All problems of a file (unknown keys, wrong types, the config's
own) are shown together in one `UserError`.
"""

import dataclasses
import hashlib
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from manicap.core.errors import UserError, unknown_choice
from manicap.core.files import atomic_write

Config = TypeVar("Config")


def to_dict(config: Any) -> dict[str, Any]:
    """Plain nested dict; None fields are left out, because TOML has no null."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
            return {name: plain(item) for name, item in fields if item is not None}
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
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise UserError(f"there is no config file {path}") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    return from_dict(cls, values, source=str(path))


def from_dict(cls: type[Config], values: Mapping[str, Any], source: str = "config") -> Config:
    """Build a config, or raise one `UserError` with every problem found."""
    problems: list[str] = []
    config = _build(cls, values, "", problems)
    if not problems:
        problems += config_problems(config)
    if problems:
        raise UserError(f"{source}: " + "; ".join(problems))
    return typing.cast(Config, config)


def config_problems(config: Any) -> list[str]:
    """What `problems()` of the config and of the configs inside it say."""
    found: list[str] = list(config.problems()) if hasattr(config, "problems") else []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            found += config_problems(value)
    return found


def check_config(config: Any) -> None:
    """Raise one `UserError` with all problems of a config built in Python or by the command line."""
    problems = config_problems(config)
    if problems:
        raise UserError("; ".join(problems))


def _build(cls: Any, values: Mapping[str, Any], prefix: str, problems: list[str]) -> Any:
    hints = typing.get_type_hints(cls)
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
            problems.append(str(unknown_choice(name, str(value), map(str, arguments))))
        return value
    if origin in (typing.Union, types.UnionType):
        return _convert_union(arguments, value, name, problems)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            problems.append(f"{name} must be a table, got {value!r}")
            return None
        return _build(hint, value, name + ".", problems)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            problems.append(f"{name} must be a list, got {value!r}")
            return None
        return tuple(_convert(arguments[0], item, f"{name}[{i}]", problems) for i, item in enumerate(value))
    if hint is Path:
        return Path(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        problems.append(f"{name} must be {hint.__name__}, got {value!r}")
    return value


def _convert_union(options: tuple[Any, ...], value: Any, name: str, problems: list[str]) -> Any:
    """The first option that takes the value; of several dataclasses, the one whose keys fit."""
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
