"""Frozen features, extracted once and cached beside the run.

    features = extract_features(FrozenEncoder(encoder), store, rows, cache_dir=run_dir)      # float32 [n, F]

The cache is `features-<hash>.npy` with its sha256 in a `.json` beside it; the hash names the encoder, its input, the
store and the rows. A file that is damaged, or that does not agree with the encoder on a few frames, is made again.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.atari.emulator import FRAME_SHAPE
from manicap.atari.splits import Rows
from manicap.atari.store import Store
from manicap.core.errors import UserError
from manicap.core.files import sha256_file, sync_directory, write_json
from manicap.core.progress import Tracker
from manicap.core.seeding import numpy_generator
from manicap.evaluate.encoders import Encoder, FrozenEncoder

Features = NDArray[np.float32]
CHECKED_FRAMES = 16
"""Frames that are encoded again to see that an encoder is deterministic and a cache is its own."""


def extract_features(
    encoder: FrozenEncoder | Encoder,
    store: Store,
    rows: Rows,
    *,
    cache_dir: Path | None = None,
    fingerprint: str | None = None,
    batch_size: int = 128,
    quiet: bool = False,
) -> Features:
    """Features float32 [n, F] of the store's rows; memory-mapped from the cache if there is a `cache_dir`.

    `fingerprint` names the encoder in the cache. A module needs none (its weights are hashed); a function without one
    is not cached.
    """
    frozen = encoder if isinstance(encoder, FrozenEncoder) else FrozenEncoder(encoder)
    sample = _encode_sample(frozen, store, rows)
    fingerprint = fingerprint or frozen.fingerprint()
    if cache_dir is None or fingerprint is None:
        features = np.empty((len(rows), sample.shape[1]), np.float32)
        _fill(features, frozen, store, rows, batch_size, quiet)
        return features
    path = Path(cache_dir) / f"features-{_key(frozen, fingerprint, store, rows)}.npy"
    cached = _read(path, (len(rows), sample.shape[1]))
    if cached is None or not np.allclose(cached[:CHECKED_FRAMES], sample, rtol=1e-3, atol=1e-4 * _scale(sample)):
        _write(path, (len(rows), sample.shape[1]), frozen, store, rows, batch_size, quiet)
        cached = np.load(path, mmap_mode="c")
    return cached


def project_features(features: Features, width: int, seed: int) -> Features:
    """Features [n, width] by a random orthogonal map: the Q of a Gaussian [F, width], seeded.

    Distances shrink alike in all directions on average, so encoders of different widths meet at one width.
    """
    num_features = features.shape[1]
    if not 1 <= width <= num_features:
        raise UserError(f"width must be between 1 and the encoder's {num_features} features, got {width}")
    gaussian = numpy_generator(seed, "projection", num_features, width).standard_normal((num_features, width))
    q, r = np.linalg.qr(gaussian)
    # With positive r the factorisation is unique: the same map from every LAPACK.
    projection = (q * np.sign(np.diagonal(r))).astype(np.float32)
    projected = np.empty((len(features), width), np.float32)
    for start in range(0, len(features), 4096):
        np.matmul(features[start : start + 4096], projection, out=projected[start : start + 4096])
    return projected


def _encode_sample(frozen: FrozenEncoder, store: Store, rows: Rows) -> Features:
    """Features of the first rows, encoded twice: an encoder that does not repeat itself is refused."""
    if not len(rows):
        raise UserError("there are no frames to encode")
    frames = np.array(store.frames[rows[:CHECKED_FRAMES]])
    first, second = frozen(frames), frozen(frames)
    if first.shape != second.shape or not np.allclose(first, second, rtol=1e-3, atol=1e-4 * _scale(first)):
        raise UserError(
            "the encoder gives other features for the same frames at the second call; features must be deterministic"
            " (call encoder.eval(), seed its noise)"
        )
    return first


def _scale(features: Features) -> float:
    return float(np.abs(features).max())


def _fill(out: Features, frozen: FrozenEncoder, store: Store, rows: Rows, batch_size: int, quiet: bool) -> None:
    # Read into a buffer rather than from the memory map, so that a pass over the store takes no memory.
    start_of_frames, frame_bytes = getattr(store.frames, "offset", 0), FRAME_SHAPE[0] * FRAME_SHAPE[1]
    with (
        (store.path / "frames.npy").open("rb") as file,
        Tracker(f"encoding {store.config.game}", len(rows), "frames", quiet) as tracker,
    ):
        for start in range(0, len(rows), batch_size):
            chosen = rows[start : start + batch_size]
            frames = np.empty((len(chosen), *FRAME_SHAPE), np.uint8)
            for frame, row in zip(frames, chosen.tolist(), strict=True):
                file.seek(start_of_frames + row * frame_bytes)
                file.readinto(frame.data)
            features = frozen(frames)
            if features.shape[1] != out.shape[1]:
                raise UserError(
                    f"the encoder must return the same number of features for all frames; got {features.shape[1]}"
                    f" after {out.shape[1]}"
                )
            out[start : start + batch_size] = features
            tracker.advance(len(chosen))


def _key(frozen: FrozenEncoder, fingerprint: str, store: Store, rows: Rows) -> str:
    rows_hash = hashlib.sha256(np.ascontiguousarray(rows, np.int64).tobytes()).hexdigest()
    parts = "\x1f".join([fingerprint, frozen.settings, store.fingerprint, rows_hash])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _read(path: Path, shape: tuple[int, int]) -> Features | None:
    """The cached features, or None if there are none that are whole."""
    try:
        expected = json.loads(path.with_suffix(".json").read_text())["sha256"]
        if sha256_file(path) != expected:
            return None
        features: Features = np.load(path, mmap_mode="c")  # copy on write: torch wants arrays that may be written
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return features if features.shape == shape and features.dtype == np.float32 else None


def _write(
    path: Path,
    shape: tuple[int, int],
    frozen: FrozenEncoder,
    store: Store,
    rows: Rows,
    batch_size: int,
    quiet: bool,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        array = np.lib.format.open_memmap(scratch, mode="w+", dtype=np.float32, shape=shape)
        _fill(array, frozen, store, rows, batch_size, quiet)
        array.flush()
        del array
        digest = sha256_file(scratch)
        os.replace(scratch, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            scratch.unlink()
        raise
    sync_directory(path.parent)
    write_json(path.with_suffix(".json"), {"sha256": digest, "shape": list(shape)})
