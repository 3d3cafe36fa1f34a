"""Named arrays in one compressed file, which is read only if its hash is unchanged."""

import hashlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.files import atomic_write

NOT_AN_ARRAY = (ValueError, EOFError, SyntaxError, TokenError, MemoryError)
"""What `np.load` raises if a file is not an array: of a damaged header it reads the words as Python."""


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> str:
    """Write an .npz file atomically and return its sha256."""
    buffer = BytesIO()
    plain: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
    np.savez_compressed(buffer, **plain)
    atomic_write(path, buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def read_arrays(path: Path, sha256: str) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file with this hash, or raise a `UserError`."""
    remedy = "remove the results beside it and evaluate again"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that was written (its sha256 differs); {remedy}")
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
