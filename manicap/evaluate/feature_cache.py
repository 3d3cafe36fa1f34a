"""Features on disk beside a run, so that all probes of it share them.

`features-<key>.npy`, with its sha256 in a `.json` beside it. A file that is damaged, or that does not agree with the
encoder on a few samples, is made again. Rows are written one after the other: a full disk is an error that can be told.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import Failure
from manicap.core.files import atomic_file, remove_scratch, require_space, sha256_file, write_json

Features = NDArray[np.float32]


def cached_features(
    directory: Path, key: str, sample: Features, num_rows: int, encode: Callable[[], Iterable[Features]]
) -> Features:
    """Features [num_rows, F], memory-mapped; encoded if there are none on disk whose first rows agree with `sample`."""
    path, shape = directory / f"features-{key}.npy", (num_rows, sample.shape[1])
    cached = _read(path, shape)
    if cached is None or not agree(cached[: len(sample)], sample):
        _write(path, shape, encode())
        cached = np.load(path, mmap_mode="c")
    return cached


def agree(first: Features, second: Features) -> bool:
    """Equal but for the rounding of another batch size."""
    scale = float(np.abs(second).max(initial=0.0))
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-3, atol=1e-4 * scale)


def has_features(run_dir: Path) -> bool:
    """Whether a job that caches features there is under way, or was killed."""
    return (run_dir / "features").exists()


def remove_features(run_dir: Path) -> None:
    """Free the disk of features that nothing needs any more: results are kept."""
    shutil.rmtree(run_dir / "features", ignore_errors=True)


def _read(path: Path, shape: tuple[int, int]) -> Features | None:
    """The cached features, or None if there are none that are whole."""
    try:
        expected = json.loads(path.with_suffix(".json").read_bytes())["sha256"]
        if sha256_file(path) != expected:
            return None
        features: Features = np.load(path, mmap_mode="c")  # copy on write: torch wants arrays that may be written
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError):
        return None
    return features if features.shape == shape and features.dtype == np.float32 else None


def _write(path: Path, shape: tuple[int, int], blocks: Iterable[Features]) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    digest = hashlib.sha256(header.getvalue())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_scratch(path.parent)
        require_space(path.parent, 4 * shape[0] * shape[1], f"the features of {shape[0]:,} samples")
        with atomic_file(path) as file:
            file.write(header.getvalue())
            for block in blocks:
                content = np.ascontiguousarray(block, "<f4").data.cast("B")
                file.write(content)
                digest.update(content)
        write_json(path.with_suffix(".json"), {"sha256": digest.hexdigest(), "shape": list(shape)})
    except OSError as error:
        raise Failure(f"features cannot be kept in {path.parent}: {error.strerror}") from error
