"""Features on disk beside a run, shared by all its probes.

`features-<key>.npy`, with its sha256 in a `.json` beside it. A file that is damaged, or that does not agree with the
encoder on a few samples, is created again. Rows are written one after another, so a full disk is a reportable error.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import Failure
from manicap.core.files import atomic_file, remove_scratch, require_space, sha256_file, write_json

Features = NDArray[np.float32]


def read_features(directory: Path, key: str, sample: Features, num_rows: int) -> Features | None:
    """Features [num_rows, F] from the cache, memory-mapped, if there are any whose first rows agree with `sample`.

    Files left incomplete by a kill are removed.
    """
    if directory.is_dir():
        remove_scratch(directory)
    cached = _read(_path(directory, key), (num_rows, sample.shape[1]))
    return cached if cached is not None and agree(cached[: len(sample)], sample) else None


def cached_features(
    directory: Path, key: str, sample: Features, num_rows: int, encode: Callable[[], Iterable[Features]]
) -> Features:
    """Features from the cache; encoded and written if they are not there."""
    cached = read_features(directory, key, sample, num_rows)
    if cached is None:
        with FeatureWriter(directory, key, (num_rows, sample.shape[1])) as writer:
            for block in encode():
                writer.add(block)
        cached = writer.read()
    return cached


class FeatureWriter:
    """Writes features block by block: `with FeatureWriter(directory, key, shape) as writer: writer.add(block)`."""

    def __init__(self, directory: Path, key: str, shape: tuple[int, int]) -> None:
        self.path, self.shape = _path(directory, key), shape
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
        self._header, self._digest = header.getvalue(), hashlib.sha256(header.getvalue())
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        directory, (rows, width) = self.path.parent, self.shape
        with self._told():
            directory.mkdir(parents=True, exist_ok=True)
            require_space(directory, 4 * rows * width, f"the features of {rows:,} samples")
            self._file = self._stack.enter_context(atomic_file(self.path))
            self._file.write(self._header)
        return self

    def add(self, block: Features) -> None:
        content = np.ascontiguousarray(block, "<f4").data.cast("B")
        with self._told():
            self._file.write(content)
        self._digest.update(content)

    def __exit__(self, *error: Any) -> None:
        with self._told():
            self._stack.__exit__(*error)
            if error[0] is None:
                write_json(
                    self.path.with_suffix(".json"), {"sha256": self._digest.hexdigest(), "shape": list(self.shape)}
                )

    def read(self) -> Features:
        """What was written, memory-mapped."""
        features: Features = np.load(self.path, mmap_mode="c")
        return features

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Failure(f"cannot write features to {self.path.parent}: {error.strerror}") from error


def agree(first: Features, second: Features) -> bool:
    """Whether they are equal up to the rounding of a different batch size."""
    scale = float(np.abs(second).max(initial=0.0))
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-3, atol=1e-4 * scale)


def has_features(run_dir: Path) -> bool:
    """Whether a job that caches features there is running, or was killed."""
    return (run_dir / "features").exists()


def remove_features(run_dir: Path) -> None:
    """Delete features that are no longer needed; results are kept."""
    shutil.rmtree(run_dir / "features", ignore_errors=True)


def _read(path: Path, shape: tuple[int, int]) -> Features | None:
    """The cached features, or None if there are none that are intact."""
    try:
        expected = json.loads(path.with_suffix(".json").read_bytes())["sha256"]
        if sha256_file(path) != expected:
            return None
        features: Features = np.load(path, mmap_mode="c")  # copy on write: torch requires writable arrays
    except (OSError, KeyError, TypeError, RecursionError, *NOT_AN_ARRAY):
        return None
    return features if features.shape == shape and features.dtype == np.float32 else None


def _path(directory: Path, key: str) -> Path:
    return directory / f"features-{key}.npy"
