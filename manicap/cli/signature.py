"""Flags that depend on other flags: the method's own settings, the domain's config, the preset's defaults.

    run = with_types(run, config=default_config, evaluation=default_evaluation)

returns `run` with the types of these defaults in its signature, from which the parser makes flags.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, make_dataclass
from types import FunctionType
from typing import Annotated, Any, Literal, get_args

import tyro

from manicap.algorithms.base import PresetName
from manicap.core.errors import UserError
from manicap.domains.base import domain_of_field, find_domain, subject_examples
from manicap.domains.run_config import RunConfig, typed_config

DEFAULT_DOMAIN = "atari"
PRESETS: tuple[PresetName, ...] = get_args(PresetName)


def with_types(function: Callable[..., None], **defaults: Any) -> Callable[..., None]:
    """The function with these defaults, and their types as annotations. A tuple gives (type, default)."""
    pairs = {name: value if isinstance(value, tuple) else (type(value), value) for name, value in defaults.items()}
    signature = inspect.signature(function, eval_str=True)
    parameters = [
        parameter.replace(annotation=pairs[name][0], default=pairs[name][1]) if name in pairs else parameter
        for name, parameter in signature.parameters.items()
    ]

    copied = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    copied.__doc__, copied.__module__ = function.__doc__, function.__module__
    copied.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    copied.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
    return copied


def value_of(flag: str, arguments: list[str]) -> str | None:
    """Value of `--flag value` or `--flag=value`."""
    for index, word in enumerate(arguments):
        if word == flag and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith(flag + "="):
            return word.removeprefix(flag + "=")
    return None


def chosen_preset(arguments: list[str], default: PresetName) -> PresetName:
    """The preset that the arguments name; the parser reports an unknown one."""
    found: Any = value_of("--preset", arguments)
    return found if found in PRESETS else default


def chosen_domain(arguments: list[str]) -> str:
    """The domain that the arguments name: by --domain, or by the flag of its subject (--game, --dataset).

    Help needs no subject; it then shows the flags of games.
    """
    named = value_of("--domain", arguments)
    if named is not None:
        return named
    given = (word.removeprefix("--").split("=")[0].replace("-", "_") for word in arguments if word.startswith("--"))
    found = next(filter(None, map(domain_of_field, given)), None)
    if found is None and not {"-h", "--help"} & set(arguments):
        raise UserError(f"name what to learn from: one of {', '.join(subject_examples())}")
    return found or DEFAULT_DOMAIN


def default_config(domain: str, arguments: list[str], preset: PresetName, fixed: tuple[str, ...] = ()) -> RunConfig:
    """The preset's values as the parser's defaults. `fixed` fields have no flag; those with no default are required."""
    found = find_domain(domain)
    method = value_of("--method", arguments) or found.default_method
    subject = value_of(f"--{found.subject_field}", arguments)
    chosen = {name: value_of(f"--{name.replace('_', '-')}", arguments) for name in found.shared_fields}
    config = found.preset(preset, subject or found.example_subject, method, chosen)
    default = _for_parser(config, ("domain", *fixed))
    if subject is None and found.default_subject is None:
        object.__setattr__(default, found.subject_field, tyro.MISSING)
    return default


def _for_parser(config: RunConfig, fixed: tuple[str, ...]) -> RunConfig:
    config_type = typed_config(config.domain, config.method)
    hints = [(field.name, field.type, field.default) for field in fields(config_type) if field.name in fixed]
    hidden = [(name, Annotated[hint, tyro.conf.Fixed], default) for name, hint, default in hints]
    config_type = make_dataclass(config_type.__name__, hidden, bases=(config_type,), frozen=True, kw_only=True)
    default = object.__new__(config_type)  # not the constructor, which would look up a game that is not known yet
    for field in fields(config_type):
        object.__setattr__(default, field.name, getattr(config, field.name))
    return default


def choice(names: tuple[str, ...]) -> Any:
    """A type whose values are these words."""
    return Literal[names]
