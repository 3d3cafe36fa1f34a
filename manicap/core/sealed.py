"""Tamper-evident JSON: an object that contains the sha256 of the rest of itself.

    write_sealed(path, {"format": 1, "score": 0.75})
    read_sealed(path, "result", remedy="evaluate again")      # the same object, or a `UserError`

With a flipped digit JSON is still JSON and a score still a score: only a checksum detects it. The checksum covers the
content, not its layout, so a file that was merely re-indented is accepted.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.files import write_json
from manicap.core.reading import read_json

SEAL = "checksum"


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` atomically, with its checksum."""
    plain = json.loads(json.dumps(value))  # as it will be read: lists for tuples, strings for keys
    write_json(path, {**plain, SEAL: _checksum(plain)})


def read_sealed(path: Path, what: str, remedy: str) -> dict[str, Any]:
    """The object in the file, as it was written. Errors call it `what` and end with `remedy`."""
    found = read_json(path, what, remedy=remedy)
    if SEAL not in found:
        raise UserError(f"{path} is not a {what} of this version (it has no checksum); {remedy}")
    seal = found.pop(SEAL)
    if seal != _checksum(found):
        raise UserError(f"{path} is damaged (its checksum differs); {remedy}")
    return found


def _checksum(value: Mapping[str, Any]) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
