"""One JSON file per result: what was measured, and everything it depends on, with a checksum."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed, write_sealed

FORMAT = 2


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    write_sealed(path, {"format": FORMAT, **result})


def has_result(path: Path) -> bool:
    """Whether the path exists: a file that cannot be read is reported by `read_result`, not skipped."""
    return os.path.lexists(path)


def read_result(path: Path) -> dict[str, Any]:
    """Read a result, or raise a `UserError` that says why it cannot be read."""
    if not has_result(path):
        raise UserError(f"there is no result at {path}: run 'manicap run' or 'manicap evaluate' first")
    result = read_sealed(path, "result", remedy="remove it and evaluate again")
    if result.get("format") != FORMAT:
        raise UserError(f"{path} has format {result.get('format')}, but this version reads {FORMAT}; evaluate again")
    return result
