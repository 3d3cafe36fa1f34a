"""Probes of state variables, by name. To add one: a class with `fit` and `predict`, and a line here or an entry point.

class MyProbe:
    name, config = "mine", MyConfig()                # a dataclass, recorded with the result
    def fit(self, train, val): ...                   # ProbeData: features [n, F], labels [n, V], episodes [n]
    def predict(self, features): ...                 # uint8 [n, V]

manicap.evaluate(encoder, game="pong", probe=lambda protocol, seed, quiet: MyProbe())
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from manicap.core.registry import Registry
from manicap.play.protocol import Protocol as ProbeProtocol
from manicap.probing.discriminant_probes import DiscriminantProbes
from manicap.probing.feature_cache import Features
from manicap.probing.knn import NearestNeighbors
from manicap.probing.linear import LinearConfig, LinearProbes
from manicap.probing.logistic import LogisticProbes
from manicap.probing.metrics import Labels
from manicap.probing.reading import Reading
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData

STEPS_AN_EPOCH = 36_000
"""Minimum number of steps of a store that an epoch of the linear probe passes over; see `_linear_for`."""


class Probe(Protocol):
    """`RidgeProbes`, `DiscriminantProbes`, `LinearProbes`, `LogisticProbes`, `NearestNeighbors` or one of your own."""

    name: str
    config: Any
    """A dataclass; its fields are recorded with the result."""

    def fit(self, train: ProbeData, val: ProbeData) -> Self: ...

    def predict(self, features: Features) -> Labels: ...


@runtime_checkable
class RegressingProbe(Probe, Protocol):
    """A probe that also regresses places and numbers, as `RidgeProbes` and `DiscriminantProbes` do."""

    def decode(self, features: Features) -> tuple[Labels, NDArray[np.floating[Any]]]:
        """Exact values [n, V], and places and numbers as regressed [n, V], NaN for names."""
        ...


@runtime_checkable
class ReadingProbe(RegressingProbe, Protocol):
    """A probe that also says how many labels and directions it takes, as `RidgeProbes` does."""

    def read(self, test: ProbeData, variables: Sequence[str]) -> Reading: ...


ProbeBuilder = Callable[[ProbeProtocol, int, bool], Probe]
"""Takes protocol, seed and quiet, and returns a probe that is not fitted yet."""

PROBES: Registry[Any] = Registry(
    "probe",
    object,
    {
        "ridge": RidgeProbes,
        "discriminant": DiscriminantProbes,
        "linear": LinearProbes,
        "logistic": LogisticProbes,
        "knn": NearestNeighbors,
    },
)
"""`linear` is the 2019 code's, for comparison with published numbers."""
WITH_PIXELS = ("ridge", "discriminant")
"""Probes of which the pixels are a floor: converged, so that nothing depends on how pixels and features are scaled."""


def find_probe(name: str, steps: int, init: str = "auto") -> ProbeBuilder:
    """How to build the probe of this name for a store with this many steps."""
    found = PROBES[name]
    if found is LinearProbes:
        return _linear_for(steps, init)
    if found in (RidgeProbes, DiscriminantProbes):
        return lambda protocol, seed, quiet: found(seed, quiet)
    if found in (LogisticProbes, NearestNeighbors):
        return lambda protocol, seed, quiet: found(quiet=quiet)
    return found


def _linear_for(steps: int, init: str) -> ProbeBuilder:
    """The protocol's probe. If the store is smaller than the protocol's, an epoch passes over it several times.

    The schedule counts epochs: with the few batches of a small store the plateau lowers the learning rate before a
    variable improves on its most frequent value. An untrained network on Pong scores 0.42 under the protocol (50,000
    steps, one pass); on 12,000 steps 0.11 with one pass per epoch, 0.18 with two, 0.23 with three, 0.47 with four.
    Three passes are a compromise with time. The logistic probe shows what is linearly decodable under any schedule.
    """
    config = LinearConfig(passes=max(1, STEPS_AN_EPOCH // steps), init=init)  # type: ignore[arg-type]
    return lambda protocol, seed, quiet: LinearProbes(config, protocol, seed, quiet)
