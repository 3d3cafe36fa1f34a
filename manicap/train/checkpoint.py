"""Checkpoints: whole or absent, hashed, the last two kept.

checkpoints/step-00001200.pt      everything the loop needs to go on
checkpoints/step-00001200.json    its sha256 and size, written after it: a checkpoint without it does not count
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from manicap.core.errors import UserError
from manicap.core.files import atomic_file, sha256_file, write_json

KEEP = 2


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, then forget all but the last two."""
        path = self.directory / f"step-{step:08d}.pt"
        with atomic_file(path) as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # torch hides what the disk said behind an error of its own
                raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        write_json(path.with_suffix(".json"), {"sha256": sha256_file(path), "bytes": path.stat().st_size, "step": step})
        for entry in self._entries()[:-KEEP]:
            entry.unlink()
            entry.with_suffix(".pt").unlink(missing_ok=True)
        for stray in self.directory.glob("*.pt"):  # left by a kill between the two writes
            if not stray.with_suffix(".json").exists():
                stray.unlink()

    def load_newest(self, say: Callable[[str], None]) -> dict[str, Any] | None:
        """The newest sound checkpoint; tells of damaged ones. None if none was ever completed."""
        entries = self._entries()
        for entry in reversed(entries):
            fault = self._fault(entry)
            if fault is None:
                state: dict[str, Any] = torch.load(entry.with_suffix(".pt"), map_location="cpu", weights_only=True)
                return state
            say(f"checkpoint {entry.with_suffix('.pt').name} {fault}: going back to the one before")
        if entries:
            raise UserError(f"no checkpoint in {self.directory} is sound; remove the run's directory to start it again")
        return None

    def newest_step(self) -> int | None:
        """Step of the newest completed checkpoint."""
        entries = self._entries()
        return int(entries[-1].stem.removeprefix("step-")) if entries else None

    def _entries(self) -> list[Path]:
        return sorted(self.directory.glob("step-*.json"))

    @staticmethod
    def _fault(entry: Path) -> str | None:
        path = entry.with_suffix(".pt")
        try:
            expected = json.loads(entry.read_text())
            sha256, size = expected["sha256"], expected["bytes"]
        except (ValueError, KeyError, TypeError):
            return "has an unreadable hash file"
        if not path.is_file():
            return "is missing"
        if path.stat().st_size != size:
            return f"has {path.stat().st_size} bytes in the place of {size}"
        return None if sha256_file(path) == sha256 else "has changed since it was written"
