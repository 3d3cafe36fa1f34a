"""Every number that a user can give has a range, and what lies outside is refused in one sentence."""

import dataclasses
import datetime
import importlib
import inspect
import math
import pkgutil
import types
import typing
from pathlib import Path
from typing import Annotated, Any

import pytest

import manicap
from manicap.algorithms import METHODS
from manicap.algorithms.base import Settings
from manicap.cli.main import COMMANDS
from manicap.core.config import check_arguments, check_config, config_problems, from_dict
from manicap.core.errors import UserError
from manicap.core.ranges import (
    Count,
    Distinct,
    Fraction,
    NonNegative,
    PathComponent,
    Positive,
    Range,
    Seeds,
    component,
    shown,
)
from manicap.domains.base import DOMAINS
from manicap.domains.run_config import typed_config

NO_CONFIGS = {"MethodContext", "Protocol"}
"""Dataclasses of numbers that no user can give."""


def modules():
    """All of manicap, except what needs packages that may not be installed."""
    for found in pkgutil.walk_packages(manicap.__path__, "manicap."):
        if found.name != "manicap.__main__" and "ray_cluster" not in found.name:
            yield importlib.import_module(found.name)


def configs() -> dict[str, type]:
    """By their names, by having `problems`, and as what a command takes: a new one is found without being listed."""
    found: dict[str, type] = {}
    for module in modules():
        for name, item in vars(module).items():
            named = name.endswith(("Config", "Settings", "Execution", "File", "Recipe"))
            if inspect.isclass(item) and dataclasses.is_dataclass(item) and (named or hasattr(item, "problems")):
                found[f"{item.__module__}.{name}"] = item
    for domain in DOMAINS:
        for name in METHODS:
            if METHODS[name].kind in DOMAINS[domain].kinds:
                found[f"config of {name} on {domain}"] = typed_config(domain, name)
    for name in COMMANDS:
        for hint in typing.get_type_hints(COMMANDS[name].load()).values():
            if dataclasses.is_dataclass(hint):
                found[f"argument of {name}: {hint.__name__}"] = typing.cast(type, hint)
    return found


def bare_numbers(hint: Any) -> bool:
    """Whether the type has an int or a float without a range in it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated and any(isinstance(item, Range) for item in arguments):
        return False
    if origin in (typing.Union, types.UnionType, tuple, list, Annotated):
        return any(bare_numbers(item) for item in arguments)
    return hint in (int, float)


def test_the_walk_finds_the_configs_of_all_stages():
    names = " ".join(configs())
    for part in (
        "StoreConfig",
        "AtariConfig",
        "ImageConfig",
        "STDIMSettings",
        "TiCoSettings",
        "Execution",
        "GridFile",
        "AtariEvaluationConfig",
        "ImageEvaluationConfig",
        "PlayDiagnosisConfig",
        "FitConfig",
        "Recipe",
        "LinearConfig",
    ):
        assert part in names, part
    subclasses = [Settings]
    for item in subclasses:
        subclasses += item.__subclasses__()
    ours = {item.__qualname__ for item in subclasses if item.__module__.startswith("manicap.")}
    assert ours <= {item.__qualname__ for item in configs().values()}


@pytest.mark.parametrize(("name", "config"), configs().items(), ids=list(configs()))
def test_every_number_of_every_config_has_a_range(name, config):
    hints = typing.get_type_hints(config, include_extras=True)
    bare = [field.name for field in dataclasses.fields(config) if bare_numbers(hints[field.name])]
    assert bare == [], f"{name}: declare these with a range of manicap.core.ranges"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_every_command_has_a_range(name):
    function = COMMANDS[name].load()
    found = [function]
    if hasattr(function, "for_arguments"):
        found += [function.for_arguments(words) for words in (["--help"], ["--dataset", "cifar10"])]
    for item in found:
        hints = typing.get_type_hints(item, include_extras=True)
        assert [key for key, hint in hints.items() if bare_numbers(hint)] == []


JUNK = (None, True, -1, 1e308, math.nan, "", "x\0", "../..", [], [[]], {"a": 1}, 1 << 40_000, datetime.date(2020, 1, 1))
START = {"game": "pong", "datasets": ["pong"]}
"""Fields that have no default."""


@pytest.mark.parametrize("config", {item.__qualname__: item for item in configs().values()}.values())
def test_whatever_a_file_says_is_taken_or_refused_in_a_sentence(config):
    names = [field.name for field in dataclasses.fields(config)]
    for name in names:
        for value in JUNK:
            taken, refusals = None, []
            try:
                taken = from_dict(config, {key: START[key] for key in names if key in START} | {name: value})
            except UserError as error:
                refusals.append(str(error))
            assert all(refusal and "\n" not in refusal for refusal in refusals)
            assert refusals or config_problems(taken) == []


@dataclasses.dataclass(frozen=True)
class Inner:
    rate: Positive = 0.1
    share: Fraction = 0.5


@dataclasses.dataclass(frozen=True)
class Outer:
    steps: Count = 10
    weight: NonNegative | None = None
    seeds: Seeds = (0,)
    window: tuple[Positive, Positive] = (1.0, 2.0)
    inner: Inner = Inner()

    def problems(self) -> list[str]:
        return [] if self.steps != 13 else ["13 brings bad luck"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"steps": 10**21}, "steps must be at most 1,000,000,000, got 1000000000000000000000"),
        ({"steps": 1 << 40_000}, "steps must be of type int, got a number of about 12,042 digits"),
        ({"steps": True}, "steps must be of type int, got True"),
        ({"steps": 2.5}, "steps must be of type int, got 2.5"),
        ({"steps": None}, "steps must be of type int, got None"),
        ({"weight": -1e-9}, "weight must not be negative, got -1e-09"),
        ({"weight": math.nan}, "weight must be a finite number, got nan"),
        ({"weight": math.inf}, "weight must be a finite number, got inf"),
        ({"seeds": ()}, "seeds must not be empty, got ()"),
        ({"seeds": (3, 3)}, "seeds must not repeat a value, got (3, 3)"),
        ({"seeds": (3, -1)}, "seeds[1] must not be negative, got -1"),
        ({"window": (1.0, math.nan)}, "window[1] must be a finite number, got nan"),
        ({"window": (1.0,)}, "window must have 2 values, got 1"),
        ({"inner": Inner(rate=0.0)}, "rate must be positive, got 0.0"),
        ({"inner": Inner(share=1.5)}, "share must be at most 1, got 1.5"),
        ({"steps": 13}, "13 brings bad luck"),
    ],
)
def test_what_is_out_of_range_is_named_with_the_requirement(changes, sentence):
    config = dataclasses.replace(Outer(), **changes)
    assert config_problems(config) == [sentence]
    with pytest.raises(ValueError, match="^"):  # a library's user catches a ValueError
        check_config(config)


def test_what_is_in_range_passes():
    assert config_problems(Outer(weight=0.0, seeds=(0, 5), inner=Inner(rate=1e-9, share=1.0))) == []
    assert config_problems(Outer(weight=1)) == []  # an int where a float is asked for


def test_all_problems_of_a_file_are_told_together_and_by_their_place():
    with pytest.raises(UserError) as caught:
        from_dict(Outer, {"steps": 0, "weight": math.nan, "inner": {"rate": -1.0}}, source="a.toml")
    assert str(caught.value) == (
        "a.toml: steps must be at least 1, got 0; weight must be a finite number, got nan; "
        "inner.rate must be positive, got -1.0"
    )


def test_an_integer_too_large_for_a_float_is_refused():
    with pytest.raises(UserError, match="rate must be float, got a number of about 401 digits"):
        from_dict(Inner, {"rate": 10**400})


def test_arguments_of_a_call_are_checked_like_a_config():
    def command(config: Outer, threads: Count | None = None) -> None: ...

    check_arguments(command, {"config": Outer(), "threads": None})
    with pytest.raises(UserError, match="steps must be at least 1, got 0; threads must be at least 1, got -1"):
        check_arguments(command, {"config": Outer(steps=0), "threads": -1})


@pytest.mark.parametrize("name", ["a", "pong-dim-c+-s0-1a2b3c4d", "Öl 7", "x" * 200])
def test_a_name_of_one_directory_passes(name):
    assert PathComponent().problem(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a ",
        "../../x",
        "/x",
        "a/b",
        "a\\b",
        ".",
        "..",
        ".x",
        "-x",
        "a\nb",
        "a\0",
        "a\x7f",
        "a\u202eb",
        "x" * 201,
    ],
)
def test_a_name_that_is_no_single_plain_directory_is_refused(name):
    assert PathComponent().problem(name)


@pytest.mark.parametrize(
    "text", ["..", "", ".", "../../x", 'h"><img src=x>', "a\nb", "\udcff", "é" * 300, " x ", "C:\\x"]
)
def test_any_text_makes_a_name_of_one_directory(text):
    assert PathComponent().problem(component(text, "images")) is None


def test_a_plain_name_stays_as_it_is():
    for name in ("cifar10", "ms_pacman", "my photos (2)", "日本"):
        assert component(name, "images") == name
    assert component("..", "images") == "images"


def test_a_quoted_value_is_short():
    assert shown("x" * 1000) == "'" + "x" * 79 + "..."
    assert shown(3) == "3"
    assert shown(Path("/x" * 100)) == "/x" * 100


def test_an_empty_list_and_a_repeated_value_are_refused():
    assert Distinct().problem(()) == "must not be empty"
    assert Distinct().problem((1, 1)) == "must not repeat a value"
    assert Distinct().problem((1, 2)) is None
