"""One seed, many named and independent streams.

    numpy_generator(seed, "collect", "pong", 3)    # the same numbers on every machine, forever

A stream's name is hashed into the entropy of a `numpy.random.SeedSequence`, so two names never share numbers and
adding a stream changes no other. For torch, seed a generator with `stream_seed`.
"""

import hashlib

import numpy as np


def stream_seed(seed: int, *name: str | int) -> int:
    """A 63-bit seed for the stream `name` under `seed`."""
    return int(_sequence(seed, name).generate_state(1, np.uint64)[0] >> np.uint64(1))


def numpy_generator(seed: int, *name: str | int) -> np.random.Generator:
    """NumPy's default generator for the stream `name` under `seed`."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, name)))


def _sequence(seed: int, name: tuple[str | int, ...]) -> np.random.SeedSequence:
    # repr keeps 1 and "1" apart; the separator keeps ("a", "bc") and ("ab", "c") apart.
    digest = hashlib.sha256("\x1f".join(map(repr, (seed, *name))).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "little"))
