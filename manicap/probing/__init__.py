"""Probes and what they are fitted on, by name.

    from manicap.probing import LinearProbes, ProbeData

    probe = LinearProbes().fit(train, val)             # ProbeData: features [n, F], labels [n, V], episodes [n]
    labels = probe.predict(test.features)              # uint8 [n, V]

State variables: `LinearProbes` (the protocol's), `LogisticProbes` (converged), `NearestNeighbors`, `MajorityClass`.
Classes of images: `LinearProbe`, `vote`. `PlayBench` splits a store; `FrameEncoder` describes an encoder's input.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manicap.probing.classes import LinearProbe, LinearProbeConfig
    from manicap.probing.encoders import FrameEncoder
    from manicap.probing.knn import NearestNeighbors
    from manicap.probing.linear import LinearConfig, LinearProbes
    from manicap.probing.logistic import LogisticConfig, LogisticProbes
    from manicap.probing.majority import MajorityClass
    from manicap.probing.metrics import weighted_f1
    from manicap.probing.play_bench import PlayBench
    from manicap.probing.sampling import ProbeData
    from manicap.probing.votes import vote

_LAZY = {
    "FrameEncoder": "manicap.probing.encoders",
    "LinearConfig": "manicap.probing.linear",
    "LinearProbe": "manicap.probing.classes",
    "LinearProbeConfig": "manicap.probing.classes",
    "LinearProbes": "manicap.probing.linear",
    "LogisticConfig": "manicap.probing.logistic",
    "LogisticProbes": "manicap.probing.logistic",
    "MajorityClass": "manicap.probing.majority",
    "NearestNeighbors": "manicap.probing.knn",
    "PlayBench": "manicap.probing.play_bench",
    "ProbeData": "manicap.probing.sampling",
    "vote": "manicap.probing.votes",
    "weighted_f1": "manicap.probing.metrics",
}
__all__ = [
    "FrameEncoder",
    "LinearConfig",
    "LinearProbe",
    "LinearProbeConfig",
    "LinearProbes",
    "LogisticConfig",
    "LogisticProbes",
    "MajorityClass",
    "NearestNeighbors",
    "PlayBench",
    "ProbeData",
    "vote",
    "weighted_f1",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'manicap.probing' has no attribute {name!r}")
