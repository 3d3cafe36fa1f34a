"""What a probe found in the features of one encoder, and where it is kept for other runs.

    kept = KeptOutcomes(runs / ".floors")
    kept.find(key)              # an Outcome, or None
    kept.keep(key, outcome)

The runs of a grid share their floors: the same untrained network and the same pixels, probed in the same way. A floor
is measured once. What a key identifies is up to the caller; the code and the processor are added here, because both
can change the digits.
"""

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import manicap
from manicap.core.arrays import NOT_AN_ARRAY, read_arrays, write_arrays
from manicap.core.errors import UserError
from manicap.core.files import write_json
from manicap.probing.metrics import Labels
from manicap.probing.reading import Reading
from manicap.train.identity import processor_identity

UNREADABLE = (UserError, OSError, KeyError, TypeError, AttributeError, RecursionError, *NOT_AN_ARRAY)
"""What reading a damaged file raises: it is measured again."""


class Outcome(NamedTuple):
    """What a probe found."""

    width: int
    """Number of features that it saw."""
    feature_width: int
    """Number of features that the encoder returned."""
    decoded: Labels
    """Exact values of every test frame [n, V]."""
    numbers: NDArray[np.floating[Any]] | None = None
    """Places and numbers as regressed [n, V], for a probe that regresses them."""
    reading: Reading | None = None
    """For a probe with label curves."""


class KeptOutcomes:
    """Files in one directory, each with its hash beside it; without a directory nothing is found or kept."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def find(self, key: tuple[Any, ...]) -> Outcome | None:
        """What was kept under this key, if it is intact."""
        if self.directory is None:
            return None
        path = self._path(key)
        try:
            sha256 = json.loads(path.with_suffix(".json").read_bytes())["sha256"]
            found: dict[str, Any] = dict(read_arrays(path, sha256))
            reading = json.loads(str(found["reading"]))
            found |= {"reading": None if reading is None else Reading.from_dict(reading)}
            found |= {name: int(found[name]) for name in ("width", "feature_width")}
            return Outcome(**found)
        except UNREADABLE:
            return None

    def keep(self, key: tuple[Any, ...], outcome: Outcome) -> None:
        if self.directory is None:
            return
        values = {name: value for name, value in outcome._asdict().items() if value is not None}
        values["reading"] = json.dumps(None if outcome.reading is None else outcome.reading.to_dict())
        path = self._path(key)
        write_json(path.with_suffix(".json"), {"sha256": write_arrays(path, values)})

    def _path(self, key: tuple[Any, ...]) -> Path:
        assert self.directory is not None
        digest = hashlib.sha256(repr((*key, *_conditions())).encode()).hexdigest()
        return self.directory / f"{digest[:16]}.npz"


def _conditions() -> tuple[Any, ...]:
    """What the last digits depend on, with the code of this package."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    versions = [version(name) for name in ("torch", "numpy", "scipy")]
    return (_package_code(), *versions, torch.get_num_threads(), repr(processor_identity(device)))


@cache
def _package_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(manicap.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
