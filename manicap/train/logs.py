"""The logs of a run, one JSON object per line: `metrics.jsonl` and, if requested, `diagnostics.jsonl`.

They contain no timestamps, so the logs of a resumed and an uninterrupted run are identical. A checkpoint records the
length of each log and the hash of that part; `run.json` of a finished run records the hash of the whole.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manicap.core.errors import Failure, UserError
from manicap.train.record import read_record

METRICS, DIAGNOSTICS = "metrics.jsonl", "diagnostics.jsonl"


@dataclass(frozen=True)
class Written:
    """Length and hash of a log so far."""

    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()


class LogFile:
    """A log that resumes where the checkpoint was written; later lines are written again, identically."""

    def __init__(self, path: Path, known: Written = Written(), accept_changes: bool = False) -> None:  # noqa: B008 - frozen
        """Truncate the file. A part that has changed since the checkpoint is an error, unless `accept_changes`."""
        path.touch()
        with path.open("r+b") as file:
            content = file.read(known.bytes)
            file.truncate(len(content))
        self._digest = hashlib.sha256(content)
        if not accept_changes and Written(len(content), self._digest.hexdigest()) != known:
            raise UserError(
                f"{path} has changed since the checkpoint was written; resume with --force to continue with what is"
                " left of it, or remove the run's directory to start over"
            )
        self.path = path
        self.file = path.open("ab")

    def write(self, values: Mapping[str, Any]) -> None:
        line = (json.dumps(values) + "\n").encode()
        self._digest.update(line)
        try:
            self.file.write(line)
        except OSError as error:
            raise self._failure(error) from error

    def flush(self) -> Written:
        """Flush everything to disk and return length and hash so far."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise self._failure(error) from error
        return Written(os.fstat(self.file.fileno()).st_size, self.sha256)

    @property
    def sha256(self) -> str:
        """Of everything written."""
        return self._digest.hexdigest()

    def close(self) -> None:
        try:
            self.file.close()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> Failure:
        return Failure(f"cannot write {self.path}: {error.strerror}")


def read_log(run_dir: Path, name: str, split: str | None = None) -> list[dict[str, Any]]:
    """The lines of a finished run's log, or those of one split; empty if the run kept no such log."""
    sha256 = read_record(run_dir).logs.get(name)
    if sha256 is None:
        return []
    path = run_dir / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; train the run again") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that was written (its sha256 differs); train the run again")
    # Parse only what is asked for: a long run has a hundred validation lines among thousands of training lines.
    mark = b"" if split is None else f'"split": "{split}"'.encode()
    return [json.loads(line) for line in content.splitlines() if mark in line]
