"""Malformed files: any field of a JSON or TOML file, and any file as a whole."""

import io
import json
import os
import random
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from campaign.nonsense import json_value
from campaign.ranges import NAMES, problem

Place = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""


MAY_BE_SOUND = ("with a BOM", "with Windows line ends", "half", "one byte short", "one byte long", "doubled")
"""What a file may have gone through and still be what somebody meant."""


@dataclass(frozen=True)
class Changed:
    what: str
    wrong: str = ""
    """Why nobody could have meant it; empty if it may be sound."""


def change_file(rng: random.Random, path: Path) -> Changed:
    """Malform one field where the file has fields, or the file as a whole."""
    if path.suffix in (".json", ".toml", ".jsonl") and rng.random() < 0.7:
        return _change_field(rng, path)
    kind = rng.choice(sorted(WHOLE))
    WHOLE[kind](path)
    # A folder of fewer pictures, and a run that was not probed yet.
    is_missing = kind == "missing" and (path.suffix == ".png" or path.parent.name == "results")
    is_sound = kind in MAY_BE_SOUND or is_missing
    return Changed(kind, "" if is_sound else kind)


def _change_field(rng: random.Random, path: Path) -> Changed:
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    number = rng.randrange(len(lines)) if lines else 0
    if not lines:
        return Changed("nothing")
    values = tomllib.loads(lines[number]) if path.suffix == ".toml" else json.loads(lines[number])
    changed = change_value(rng, values, has_null=path.suffix != ".toml")
    lines[number] = _dump_toml(values) if path.suffix == ".toml" else json.dumps(values)
    content = "\n".join(lines) + "\n" * (path.suffix == ".jsonl")
    path.write_text(content, errors="surrogatepass")
    return changed


def change_value(rng: random.Random, values: dict[str, Any], *, has_null: bool = True) -> Changed:
    """Change, remove, rename or add one thing, anywhere in the nested values. Without null, None removes."""
    places = list(_places(values))
    if not places:
        values["x"] = 1
        return Changed("x = 1 added", "a key that is not known")
    place = rng.choice(places)
    holder, key = _holder(values, place), place[-1]
    name = next((str(part) for part in reversed(place) if isinstance(part, str)), "")
    shown = ".".join(map(str, place))
    kind = rng.random()
    if kind < 0.12:
        del holder[key]
        return Changed(f"{shown} removed")
    if kind < 0.2 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
        return Changed(f"{shown} renamed", "a key that is not known")
    old, new = holder[key], json_value(rng, holder[key])
    holder[key] = new
    if new is None and not has_null:
        return Changed(f"{shown} removed")
    wrong = problem(name, new) if isinstance(new, int | float) else ""
    if name in NAMES and isinstance(old, str):
        wrong = f"{name} is {new!r}"
    if type(old) is not type(new) and not (isinstance(old, float) and isinstance(new, int)):
        wrong = wrong or f"{name} is {type(new).__name__} and was {type(old).__name__}"
    return Changed(f"{shown} = {str(new)[:60]!r}", wrong)


def _places(values: Any, before: Place = ()) -> Iterator[Place]:
    """Every value, inner and outer."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from _places(value, (*before, key))


def _holder(values: Any, place: Place) -> Any:
    for key in place[:-1]:
        values = values[key]
    return values


def _dump_toml(values: dict[str, Any]) -> str:
    """TOML has no null: a value that became one is left out."""

    def sound(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sound(item) for key, item in value.items() if item is not None}
        return [sound(item) for item in value if item is not None] if isinstance(value, list) else value

    return tomli_w.dumps(sound(values))


def _replaced(content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_bytes(content(path.read_bytes()))

    return change


def _as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _as_link_to(target: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        os.symlink(target.replace("SELF", path.name), path)

    return change


def _npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


WHOLE: dict[str, Callable[[Path], None]] = {
    "empty": _replaced(lambda content: b""),
    "half": _replaced(lambda content: content[: len(content) // 2]),
    "one byte short": _replaced(lambda content: content[:-1]),
    "one byte long": _replaced(lambda content: content + b"x"),
    "zeros": _replaced(lambda content: bytes(len(content))),
    "not UTF-8": _replaced(lambda content: b"\xff\xfe" + content),
    "with a BOM": _replaced(lambda content: b"\xef\xbb\xbf" + content),
    "with Windows line ends": _replaced(lambda content: content.replace(b"\n", b"\r\n")),
    "null": _replaced(lambda content: b"null"),
    "a list": _replaced(lambda content: b"[]"),
    "a number": _replaced(lambda content: b"1"),
    "an empty table": _replaced(lambda content: b"{}"),
    "nested deeply": _replaced(lambda content: b"[" * 100_000),
    "nested deeply, whole": _replaced(lambda content: b'{"format": 1, "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "of 5000 digits": _replaced(lambda content: b'{"format": ' + b"9" * 5000 + b"}"),
    "TOML of 5000 digits": _replaced(lambda content: b"seed = " + b"9" * 5000 + b"\n" + content),
    "doubled": _replaced(lambda content: content + content),
    "a directory": _as_directory,
    "missing": lambda path: path.unlink(),
    "a link to nowhere": _as_link_to("nowhere"),
    "a link to itself": _as_link_to("SELF"),
    "an NPY of objects": _replaced(lambda content: _npy_header("|O", (1,)) + b"x" * 9),
    "a huge NPY": _replaced(lambda content: _npy_header("<f8", (10**14,))),
}
