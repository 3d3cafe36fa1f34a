"""One JSON a result: what was measured, and everything it depends on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.files import write_json

FORMAT = 1


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    write_json(path, {"format": FORMAT, **result})


def read_result(path: Path) -> dict[str, Any]:
    """A result, or a `UserError` that says why it cannot be read."""
    try:
        result: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"there is no result at {path}: run 'manicap run' or 'manicap evaluate' first") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove it and evaluate again") from None
    if result.get("format") != FORMAT:
        raise UserError(f"{path} has format {result.get('format')}, this version reads {FORMAT}")
    return result
