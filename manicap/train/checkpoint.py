"""Checkpoints: whole or absent, hashed, the last two kept.

checkpoints/step-00001200-0.pt             everything the loop needs to go on
checkpoints/best-1a2b3c4d5e6f7081.safetensors    the best weights so far, shared by the checkpoints that know them
checkpoints/step-00001200.json             names these files with size and sha256, written last: what makes them count

No file is written over: a second checkpoint of a step has a file of its own, and until the .json is replaced the first
one stands. What no .json names is removed.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from manicap.core.errors import Failure, UserError
from manicap.core.files import atomic_file, atomic_write, sha256_file
from manicap.core.sealed import read_sealed, write_sealed
from manicap.train.encoder_files import read_weights

KEEP = 2


class KeptFile(NamedTuple):
    """A file of a checkpoint, as it was written."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Checkpoint:
    """A sound checkpoint, read."""

    state: dict[str, Any]
    best: KeptFile | None
    """The best weights so far, if there were any."""


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, step: int, state: dict[str, Any], best: KeptFile | None = None) -> None:
        """Write a checkpoint, then forget all but the last two up to it: later ones were damaged."""
        path = self._unused_path(step)
        with atomic_file(path) as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # torch hides what the disk said behind an error of its own
                raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        files = {"state": KeptFile(path.name, path.stat().st_size, sha256_file(path))._asdict()}
        if best is not None:
            files["best"] = best._asdict()
        entry = self._entry(step)
        write_sealed(entry, {"step": step, "files": files})
        entries = self._entries()
        kept = entries[: entries.index(entry) + 1][-KEEP:]
        for other in entries:
            if other not in kept:
                other.unlink()
        self._remove_unnamed()

    def keep_best(self, weights: Mapping[str, Tensor]) -> KeptFile:
        """Write weights for the next checkpoint to name."""
        content = safetensors.torch.save(dict(weights))
        sha256 = hashlib.sha256(content).hexdigest()
        name = f"best-{sha256[:16]}.safetensors"
        atomic_write(self.directory / name, content)
        return KeptFile(name, len(content), sha256)

    def read_best(self, best: KeptFile) -> dict[str, Tensor]:
        try:
            return read_weights(self.directory / best.name, best.sha256)
        except UserError:
            raise Failure(
                f"{self.directory / best.name} is not the file that was written; the same call goes back to the"
                " checkpoint before"
            ) from None

    def load_newest(self, say: Callable[[str], None]) -> Checkpoint | None:
        """The newest sound checkpoint; tells of damaged ones. None if none was ever completed."""
        entries = self._entries()
        for entry in reversed(entries):
            files, fault = self._inspect(entry)
            if fault is None:
                path = self.directory / files["state"].name
                return Checkpoint(torch.load(path, map_location="cpu", weights_only=True), files.get("best"))
            say(f"checkpoint {entry.stem} {fault}: going back to the one before")
        if entries:
            raise UserError(f"no checkpoint in {self.directory} is sound; remove the run's directory to start it again")
        return None

    def newest_step(self) -> int | None:
        """Step of the newest completed checkpoint."""
        entries = self._entries()
        return int(entries[-1].stem.removeprefix("step-")) if entries else None

    def remove(self) -> None:
        """All of them: the run is finished."""
        if self.directory.is_dir():
            shutil.rmtree(self.directory)

    def _entry(self, step: int) -> Path:
        return self.directory / f"step-{step:08d}.json"

    def _entries(self) -> list[Path]:
        return sorted(
            path for path in self.directory.glob("step-*.json") if path.stem.removeprefix("step-").isdecimal()
        )

    def _unused_path(self, step: int) -> Path:
        number = 0
        while (path := self.directory / f"step-{step:08d}-{number}.pt").exists():
            number += 1
        return path

    def _remove_unnamed(self) -> None:
        """Remove what no checkpoint names: files of forgotten ones, or of a kill before they were named."""
        named: set[str] = set()
        for entry in self._entries():
            files, _ = self._read(entry)
            named |= {file.name for file in files.values()}
        for pattern in ("step-*.pt", "best-*.safetensors"):
            for path in self.directory.glob(pattern):
                if path.name not in named:
                    path.unlink()

    def _inspect(self, entry: Path) -> tuple[dict[str, KeptFile], str | None]:
        """The files of a checkpoint, and what is wrong with one of them."""
        files, fault = self._read(entry)
        for file in files.values() if fault is None else ():
            path = self.directory / file.name
            if not path.is_file():
                return files, f"is damaged: {file.name} is missing"
            if path.stat().st_size != file.bytes:
                return files, f"is damaged: {file.name} has {path.stat().st_size} bytes in the place of {file.bytes}"
            if sha256_file(path) != file.sha256:
                return files, f"is damaged: {file.name} has changed since it was written"
        return files, fault

    @staticmethod
    def _read(entry: Path) -> tuple[dict[str, KeptFile], str | None]:
        try:
            values = read_sealed(entry, "checkpoint", remedy="go back")
        except UserError:
            return {}, f"is damaged: {entry.name} cannot be read"
        return {name: KeptFile(**file) for name, file in values["files"].items()}, None
