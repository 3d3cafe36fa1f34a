"""Read text, TOML and JSON that may be foreign or damaged: the result is a checked value or one `UserError`.

read_json(path, "result", {"format": int, "scores": dict}, remedy="evaluate again")
"""

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.ranges import shown

LARGEST_TEXT = 1 << 30
"""In bytes. No file that manicap writes comes near it."""

Keys = Mapping[str, type | tuple[type, ...]]
"""Keys that an object must have, with the types of their values."""


def read_text(path: Path, what: str, remedy: str = "") -> str:
    """The text of a regular UTF-8 file."""
    advice = f"; {remedy}" if remedy else ""
    try:
        status = path.stat()
        fault = _fault(status)
        content = b"" if fault else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"there is no {what} {shown(path)}{advice}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"cannot read the {what} {shown(path)}: {reason(error)}{advice}") from None
    if fault:
        raise UserError(f"cannot read the {what} {shown(path)}: it is {fault}{advice}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{shown(path)} is not a {what}: byte {error.start} is not UTF-8{advice}") from None


def read_toml_table(path: Path, what: str, remedy: str = "") -> dict[str, Any]:
    text = read_text(path, what, remedy)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # integers of thousands of digits; lists of thousands of levels
        raise UserError(f"{path} is not valid TOML: {reason(error)}{f'; {remedy}' if remedy else ''}") from None


def read_json(path: Path, what: str, keys: Keys | None = None, remedy: str = "") -> dict[str, Any]:
    """The object in a JSON file, with at least these keys."""
    return parse_json(read_text(path, what, remedy), path, what, keys, remedy)


def read_json_lines(path: Path, what: str, keys: Keys | None = None, remedy: str = "") -> list[dict[str, Any]]:
    """The objects of a file with one JSON object per line; none if there is no file."""
    if not path.exists():
        return []
    lines = read_text(path, what, remedy).splitlines()
    places = [f"{path}, line {number}," for number in range(1, len(lines) + 1)]
    return [parse_json(line, place, what, keys, remedy) for line, place in zip(lines, places, strict=True)]


def parse_json(text: str, source: Path | str, what: str, keys: Keys | None = None, remedy: str = "") -> dict[str, Any]:
    """The object in a text; `source` is named in the error."""
    advice = f"; {remedy}" if remedy else ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source} is damaged ({reason(error)}){advice}") from None
    if not isinstance(found, dict):
        raise UserError(f"{source} is not a {what}: it contains a {type(found).__name__}, not an object{advice}")
    for key, expected in (keys or {}).items():
        if key not in found:
            raise UserError(f"{source} is not a {what}: {key!r} is missing{advice}")
        if not isinstance(found[key], expected):
            raise UserError(f"{source} is not a {what}: {key!r} is {shown(found[key])}{advice}")
    return found


def _fault(status: os.stat_result) -> str:
    """Why a file should not be opened; empty if it may be."""
    if stat.S_ISDIR(status.st_mode):
        return "a directory"
    if not stat.S_ISREG(status.st_mode):  # a FIFO would wait for a writer forever
        return "not a regular file"
    return f"too large ({status.st_size:,} bytes)" if status.st_size > LARGEST_TEXT else ""


def reason(error: BaseException) -> str:
    """The reason as the system words it: an OSError would repeat the path, other errors may be empty."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return shown(str(error).replace("\n", " ")).strip("'") or type(error).__name__
