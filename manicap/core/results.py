"""One JSON a result: what was measured, and everything it depends on, with a checksum."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.files import sha256_file
from manicap.core.sealed import read_sealed, write_sealed

FORMAT = 1


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    write_sealed(path, {"format": FORMAT, **result})


def read_result(path: Path) -> dict[str, Any]:
    """A result, or a `UserError` that says why it cannot be read."""
    if not path.exists():
        raise UserError(f"there is no result at {path}: run 'manicap run' or 'manicap evaluate' first")
    result = read_sealed(path, "result", remedy="remove it and evaluate again")
    if result.get("format") != FORMAT:
        raise UserError(f"{path} has format {result.get('format')}, this version reads {FORMAT}")
    return result


def known_result(path: Path, encoder: str) -> dict[str, Any] | None:
    """A result of this encoder that was measured before; None if there is none, or none with its decoded labels."""
    if not path.is_file():
        return None
    result, labels = read_result(path), path.with_suffix(".npz")
    if result.get("encoder") != encoder or not labels.is_file():
        return None
    return result if sha256_file(labels) == result.get("predictions_sha256") else None
