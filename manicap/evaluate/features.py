"""Frozen features, extracted once and cached beside the run.

    features = extract_features(FrozenEncoder(encoder), store, rows, cache_dir=run_dir)      # float32 [n, F]

The key of the cache names the encoder, its input, the store and the rows.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from manicap.atari.emulator import FRAME_SHAPE
from manicap.atari.splits import Rows
from manicap.atari.store import Store
from manicap.core.errors import UserError
from manicap.core.progress import Tracker
from manicap.core.seeding import numpy_generator
from manicap.evaluate.encoders import Encoder, FrozenEncoder
from manicap.evaluate.feature_cache import Features, agree, cached_features

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
    blocks = partial(_encode_blocks, frozen, store, rows, sample.shape[1], batch_size, quiet)
    if cache_dir is not None and fingerprint is not None:
        key = _key(frozen, fingerprint, store, rows)
        return cached_features(Path(cache_dir), key, sample, len(rows), blocks)
    features = np.empty((len(rows), sample.shape[1]), np.float32)
    start = 0
    for block in blocks():
        features[start : start + len(block)] = block
        start += len(block)
    return features


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
    if not agree(first, second):
        raise UserError(
            "the encoder gives other features for the same frames at the second call; features must be deterministic"
            " (call encoder.eval(), seed its noise)"
        )
    return first


def _encode_blocks(
    frozen: FrozenEncoder, store: Store, rows: Rows, width: int, batch_size: int, quiet: bool
) -> Iterator[Features]:
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
            if features.shape[1] != width:
                raise UserError(
                    f"the encoder must return the same number of features for all frames; got {features.shape[1]}"
                    f" after {width}"
                )
            yield features
            tracker.advance(len(chosen))


def _key(frozen: FrozenEncoder, fingerprint: str, store: Store, rows: Rows) -> str:
    rows_hash = hashlib.sha256(np.ascontiguousarray(rows, np.int64).tobytes()).hexdigest()
    parts = "\x1f".join([fingerprint, frozen.settings, store.fingerprint, rows_hash])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
