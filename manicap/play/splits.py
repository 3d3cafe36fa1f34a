"""Splits, duplicates, pairs and label entropy: pure functions over a store.

    splits = probe_splits(store, FIXED, "corrected", seed=0)
    splits.test.rows          rows of the store's arrays
    splits.counts             what was dropped, for display

A `Part` is a list of rows and, for each row, the episode it belongs to.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator
from manicap.play.protocol import Protocol
from manicap.play.store import Integers, PlayStore, Rows


@dataclass(frozen=True)
class Part:
    """One split: rows in ascending order, and for each its index into `store.episodes`."""

    name: str
    rows: Rows
    episodes: Rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def num_episodes(self) -> int:
        return len(np.unique(self.episodes))


@dataclass(frozen=True)
class PretrainSplits:
    train: Part
    val: Part
    counts: dict[str, int]


@dataclass(frozen=True)
class ProbeSplits:
    train: Part
    val: Part
    test: Part
    variables: tuple[str, ...]
    """Variables whose entropy reaches the protocol's threshold."""
    entropies: dict[str, float]
    """Entropy in nats of every variable of the annotation set."""
    counts: dict[str, int]


def pretrain_splits(store: PlayStore, protocol: Protocol, seed: int) -> PretrainSplits:
    """Training and validation episodes for pretraining."""
    kept, counts = _long_episodes(store, protocol)
    train, val = split_episodes(store, kept, protocol, protocol.pretrain_fractions, ("train", "val"), seed)
    return PretrainSplits(train, val, counts | {"frames_train": len(train), "frames_val": len(val)})


def probe_splits(store: PlayStore, protocol: Protocol, annotation_set: str, seed: int) -> ProbeSplits:
    """Training, validation and test episodes for probing, without test frames seen before and without flat labels."""
    kept, counts = _long_episodes(store, protocol)
    names = ("train", "val", "test")
    train, val, test = split_episodes(store, kept, protocol, protocol.probe_fractions, names, seed)
    everything = np.concatenate([train.rows, val.rows, test.rows])
    entropies = {
        name: entropy(values) for name, values in read_labels(store, everything, annotation_set, protocol).items()
    }
    variables = tuple(name for name, nats in entropies.items() if nats >= protocol.min_entropy)
    unique_test = drop_seen_frames(store, test, seen=(train, val))
    if not variables:
        raise UserError(
            f"no variable of {annotation_set} varies enough in {store.path} (all below {protocol.min_entropy} nats over"
            f" {len(everything)} frames); collect more steps (now {len(store)})"
        )
    counts |= {
        "test_frames_seen_in_training": len(test) - len(unique_test),
        "variables_under_entropy": len(entropies) - len(variables),
    }
    counts |= {f"frames_{part.name}": len(part) for part in (train, val, unique_test)}
    return ProbeSplits(train, val, unique_test, variables, entropies, counts)


def split_episodes(
    store: PlayStore, kept: Rows, protocol: Protocol, fractions: Sequence[float], names: Sequence[str], seed: int
) -> list[Part]:
    """Divide episodes by count. `fixed` gives every split at least one episode if there are enough."""
    order = kept
    if protocol.split_order == "shuffled":
        order = numpy_generator(seed, "split", *names).permutation(kept)
    # Cut where the 2019 code cuts: at the floor of the cumulative fraction. The small term compensates 0.7 + 0.1 < 0.8.
    cuts = [int(sum(fractions[: i + 1]) * len(order) + 1e-9) for i in range(len(fractions) - 1)]
    if protocol.split_order == "shuffled" and len(order) >= len(names):
        for i in range(len(cuts)):
            cuts[i] = max(cuts[i], (cuts[i - 1] if i else 0) + 1)
        for i in reversed(range(len(cuts))):
            cuts[i] = min(cuts[i], (cuts[i + 1] if i + 1 < len(cuts) else len(order)) - 1)
    parts = [_part(store, name, np.sort(piece)) for name, piece in zip(names, np.split(order, cuts), strict=True)]
    empty = [part.name for part in parts if not len(part)]
    if empty:
        raise UserError(
            f"{store.path} is too small for {len(names)} splits ({', '.join(empty)} would be empty): of"
            f" {len(store.episodes)} episodes, {len(kept)} are longer than {protocol.longest_dropped_episode} frames;"
            f" collect more steps (now {len(store)})"
        )
    return parts


def drop_seen_frames(store: PlayStore, part: Part, seen: Sequence[Part]) -> Part:
    """`part` without the frames whose bytes occur in `seen`. Keeps one 16-byte hash per frame, not the frames."""
    known = {digest for other in seen for digest in _frame_hashes(store, other)}
    keep = np.array([digest not in known for digest in _frame_hashes(store, part)], bool)
    if not keep.any():
        raise UserError(
            f"every frame of the {part.name} split of {store.path} also occurs in"
            f" {' or '.join(other.name for other in seen)}; collect more steps (now {len(store)})"
        )
    return Part(part.name, part.rows[keep], part.episodes[keep])


def frame_pairs(store: PlayStore, part: Part, protocol: Protocol) -> tuple[Rows, Rows]:
    """Rows (t, t+1). Under `reference` the last frame of a life is also paired with its first."""
    starts, lengths = store.episodes["start"][part.episodes], store.episodes["length"][part.episodes]
    is_last = part.rows == starts + lengths - 1
    if protocol.pairs == "wrapping":
        return part.rows, np.where(is_last, starts, part.rows + 1)
    return part.rows[~is_last], part.rows[~is_last] + 1


def read_labels(
    store: PlayStore, rows: Rows, annotation_set: str, protocol: Protocol, names: Sequence[str] | None = None
) -> Mapping[str, Integers]:
    """Labels of the rows. Under `reference` a life's first frame has those that ended the life before."""
    return store.labelling(annotation_set).labels(rows, names, stale_first=protocol.first_label == "stale")


def entropy(values: Integers) -> float:
    """Shannon entropy in nats of the empirical distribution: - sum p log p."""
    counts = np.bincount(values)
    p = counts[counts > 0] / len(values)
    return float(-(p * np.log(p)).sum()) + 0.0  # + 0.0 turns -0.0, the entropy of a constant, into 0.0


def _long_episodes(store: PlayStore, protocol: Protocol) -> tuple[Rows, dict[str, int]]:
    lengths = store.episodes["length"]
    kept = np.flatnonzero(lengths > protocol.longest_dropped_episode)
    counts = {
        "episodes": len(lengths),
        "episodes_too_short": len(lengths) - len(kept),
        "frames": len(store),
        "frames_in_short_episodes": len(store) - int(lengths[kept].sum()),
    }
    return kept, counts


def _part(store: PlayStore, name: str, episodes: Rows) -> Part:
    starts, lengths = store.episodes["start"][episodes], store.episodes["length"][episodes]
    pieces = [np.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    rows = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    return Part(name, rows, np.repeat(episodes, lengths))


def _frame_hashes(store: PlayStore, part: Part) -> list[bytes]:
    """128-bit hashes: among a million frames, two different ones collide with a probability below 1e-26."""
    chunks = store.frame_chunks(part.rows)
    return [hashlib.blake2b(frame, digest_size=16).digest() for chunk in chunks for frame in chunk]
