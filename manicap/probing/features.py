"""Frozen features, extracted once and cached beside the run.

    features = extract_features(FrameEncoder(encoder), store, rows, cache_dir=run_dir)      # float32 [n, F]

The cache key identifies the encoder, its input, the store and the rows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.progress import Tracker
from manicap.core.seeding import numpy_generator
from manicap.play.store import PlayStore, Rows
from manicap.play.views import GRAY, View
from manicap.probing.encoders import Encoder, EncoderFailed, FrameEncoder
from manicap.probing.feature_cache import Features, FeatureWriter, agree, read_features

CHECKED_FRAMES = 16
"""Number of frames encoded again to verify that an encoder is deterministic and a cache is its own."""


def extract_features(
    encoder: FrameEncoder | Encoder,
    store: PlayStore,
    rows: Rows,
    view: View = GRAY,
    *,
    cache_dir: Path | None = None,
    fingerprint: str | None = None,
    batch_size: int = 128,
    quiet: bool = False,
) -> Features:
    """Features float32 [n, F] of the store's rows; memory-mapped from the cache if there is a `cache_dir`.

    `fingerprint` identifies the encoder in the cache. A module needs none (its weights are hashed); a function without
    one is not cached.
    """
    [features] = extract_all([(encoder, fingerprint)], store, rows, cache_dir, batch_size, quiet, view)
    return features


def extract_all(
    encoders: Sequence[tuple[FrameEncoder | Encoder, str | None]],
    store: PlayStore,
    rows: Rows,
    cache_dir: Path | None = None,
    batch_size: int = 128,
    quiet: bool = False,
    view: View = GRAY,
) -> list[Features]:
    """Features of several encoders, each with its fingerprint or None, from one pass over the frames."""
    frozen = [each if isinstance(each, FrameEncoder) else FrameEncoder(each) for each, _ in encoders]
    samples = [_encode_sample(encoder, store, rows, view) for encoder in frozen]
    found: list[Features | None] = []
    sinks: list[FeatureWriter | _InMemory | None] = []
    for encoder, (_, fingerprint), sample in zip(frozen, encoders, samples, strict=True):
        name, shape = fingerprint or encoder.fingerprint(), (len(rows), sample.shape[1])
        if cache_dir is None or name is None:
            found.append(None)
            sinks.append(_InMemory(shape))
            continue
        key = _key(encoder, name, store, rows, view)
        found.append(read_features(cache_dir, key, sample, len(rows)))
        sinks.append(FeatureWriter(cache_dir, key, shape) if found[-1] is None else None)
    wanted = [(encoder, sink) for encoder, sink in zip(frozen, sinks, strict=True) if sink is not None]
    if wanted:
        with ExitStack() as stack:
            for _, writer in wanted:
                stack.enter_context(writer)
            for frames in _read_blocks(store, rows, view, batch_size, quiet):
                for encoder, writer in wanted:
                    writer.add(_encode(encoder, frames, writer.shape[1]))
    return [known if known is not None else sink.read() for known, sink in zip(found, sinks, strict=True)]  # type: ignore[union-attr]


class _InMemory:
    """Like `FeatureWriter`, without a file."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape, self._features, self._start = shape, np.empty(shape, np.float32), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add(self, block: Features) -> None:
        self._features[self._start : self._start + len(block)] = block
        self._start += len(block)

    def read(self) -> Features:
        return self._features


def project_features(features: Features, width: int, seed: int) -> Features:
    """Features [n, width] by a random orthogonal map.

    On average, distances shrink equally in all directions, so encoders of different widths are comparable at one width.
    """
    matrix = projection(features.shape[1], width, seed)
    projected = np.empty((len(features), width), np.float32)
    for start in range(0, len(features), 4096):
        np.matmul(features[start : start + 4096], matrix, out=projected[start : start + 4096])
    return projected


def projection(num_features: int, width: int, seed: int) -> NDArray[np.float32]:
    """A random orthogonal map [F, width]: the Q of a Gaussian, seeded."""
    if not 1 <= width <= num_features:
        raise UserError(f"width must be between 1 and the encoder's {num_features} features, got {width}")
    gaussian = numpy_generator(seed, "projection", num_features, width).standard_normal((num_features, width))
    q, r = np.linalg.qr(gaussian)
    # With positive r the factorisation is unique: every LAPACK gives the same map.
    return np.asarray((q * np.sign(np.diagonal(r))).astype(np.float32))


def _encode_sample(frozen: FrameEncoder, store: PlayStore, rows: Rows, view: View) -> Features:
    """Features of the first rows, encoded twice: a nondeterministic encoder is refused."""
    if not len(rows):
        raise UserError("there are no frames to encode")
    frames = view.read(store, rows[:CHECKED_FRAMES])
    first, second = (_encode_view(frozen, frames, view) for _ in range(2))
    if not agree(first, second):
        raise UserError(
            "the encoder returned different features for the same frames on the second call; features must be"
            " deterministic (call encoder.eval(), seed its noise)"
        )
    return first


def require_fitting(frozen: FrameEncoder, view: View) -> None:
    """Raise a `UserError` if the encoder fails on frames of this shape. Black ones may have no finite features."""
    try:
        _encode_view(frozen, np.zeros((2, *view.shape), np.uint8), view)
    except EncoderFailed:
        raise
    except UserError:
        return


def _encode_view(frozen: FrameEncoder, frames: NDArray[np.uint8], view: View) -> Features:
    try:
        return frozen(frames)
    except EncoderFailed as error:
        raise EncoderFailed(
            f"frames are {view} ({' x '.join(map(str, view.shape))}): for an encoder that sees others give colour,"
            f" stack and size, such as stack=4, size=(84, 84); {error}"
        ) from error


def _read_blocks(store: PlayStore, rows: Rows, view: View, batch_size: int, quiet: bool) -> Iterator[NDArray[np.uint8]]:
    with Tracker(f"encoding {store.subject}", len(rows), "frames", quiet) as tracker:
        for frames in view.chunks(store, rows, batch_size):
            yield frames
            tracker.advance(len(frames))


def _encode(encoder: FrameEncoder, frames: NDArray[np.uint8], width: int) -> Features:
    features = encoder(frames)
    if features.shape[1] != width:
        raise UserError(
            f"the encoder must return the same number of features for all frames; got {features.shape[1]} after {width}"
        )
    return features


def _key(frozen: FrameEncoder, fingerprint: str, store: PlayStore, rows: Rows, view: View) -> str:
    rows_hash = hashlib.sha256(np.ascontiguousarray(rows, np.int64).tobytes()).hexdigest()
    parts = "\x1f".join(
        [fingerprint, frozen.settings, store.fingerprint, rows_hash, *([] if view == GRAY else [str(view)])]
    )
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
