"""Checkpoints: complete or absent, hashed, the last two kept.

checkpoints/step-00001200-0.pt    everything the loop needs to resume, including the best weights so far
checkpoints/step-00001200.json    its file name, size and sha256; written last, and only then the checkpoint counts

No file is overwritten: a second checkpoint of a step gets a file of its own, and the first one remains valid until the
.json is replaced. Files that no .json names are removed.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from manicap.core.errors import UserError
from manicap.core.files import atomic_file, sha256_file
from manicap.core.sealed import read_sealed, write_sealed

KEEP = 2


class KeptFile(NamedTuple):
    """The file of a checkpoint, as it was written."""

    file: str
    bytes: int
    sha256: str


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, then remove all but the last two up to it; any later ones were damaged."""
        path = self._unused_path(step)
        with atomic_file(path) as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # torch hides the disk's error behind its own
                raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        kept = KeptFile(path.name, path.stat().st_size, sha256_file(path))
        entry = self.directory / f"step-{step:08d}.json"
        if entry.is_dir():
            _remove(entry)
        write_sealed(entry, {"step": step, **kept._asdict()})
        entries = self._entries()
        recent = entries[: entries.index(entry) + 1][-KEEP:]
        for other in entries:
            if other not in recent:
                _remove(other)
        self._remove_unnamed()

    def load_newest(self, say: Callable[[str], None]) -> dict[str, Any] | None:
        """Load the newest intact checkpoint and report damaged ones. None if none was ever completed."""
        entries = self._entries()
        for entry in reversed(entries):
            kept = self._read(entry)
            fault = f"{entry.name} cannot be read" if kept is None else self._fault(kept)
            if kept is not None and fault is None:
                state: dict[str, Any] = torch.load(self.directory / kept.file, map_location="cpu", weights_only=True)
                return state
            say(f"checkpoint {entry.stem} is damaged ({fault}): falling back to the previous one")
        if entries:
            raise UserError(f"no checkpoint in {self.directory} is intact; remove the run's directory to start over")
        return None

    def newest_step(self) -> int | None:
        """Step of the newest checkpoint whose .json can be read."""
        readable = [entry for entry in self._entries() if self._read(entry) is not None]
        return int(readable[-1].stem.removeprefix("step-")) if readable else None

    def remove(self) -> None:
        """Remove all checkpoints: the run is finished."""
        if self.directory.is_dir():
            shutil.rmtree(self.directory)

    def _entries(self) -> list[Path]:
        found = self.directory.glob("step-*.json")
        return sorted(path for path in found if path.stem.removeprefix("step-").isdecimal())

    def _unused_path(self, step: int) -> Path:
        number = 0
        while (path := self.directory / f"step-{step:08d}-{number}.pt").exists():
            number += 1
        return path

    def _remove_unnamed(self) -> None:
        """Remove files that no checkpoint names: of removed ones, or left by a kill before they were named."""
        named = {kept.file for entry in self._entries() if (kept := self._read(entry)) is not None}
        for path in self.directory.glob("step-*.pt"):
            if path.name not in named:
                _remove(path)

    def _fault(self, kept: KeptFile) -> str | None:
        path = self.directory / kept.file
        if not path.is_file():
            return f"{kept.file} is missing"
        if path.stat().st_size != kept.bytes:
            return f"{kept.file} has {path.stat().st_size} bytes instead of {kept.bytes}"
        return None if sha256_file(path) == kept.sha256 else f"{kept.file} has changed since it was written"

    @staticmethod
    def _read(entry: Path) -> KeptFile | None:
        """The content of the .json; None if it is damaged."""
        try:
            values = read_sealed(entry, "checkpoint", remedy="go back")
            return KeptFile(*(values[name] for name in KeptFile._fields))
        except (UserError, KeyError):
            return None


def _remove(path: Path) -> None:
    """Remove a file, or an empty directory that stands in its place."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
