"""What is measured, and how: the two named protocols.

`fixed` is right; `reference` is the 2019 code's behaviour, so that published numbers can be compared. Every result
carries the name of its protocol.
"""

from dataclasses import dataclass
from typing import Literal

from manicap.core.errors import unknown_choice

ProtocolName = Literal["fixed", "reference"]


@dataclass(frozen=True)
class Protocol:
    """Every choice in which the two protocols differ, and the numbers they share."""

    name: ProtocolName
    split_order: Literal["shuffled", "lane order"]
    """Which episodes go to which split: shuffled by the seed, or in the order of the lanes."""
    first_label: Literal["own", "stale"]
    """Label of a life's first frame: its own, or that of the step that ended the life before."""
    pairs: Literal["within a life", "wrapping"]
    """Pairs (t, t+1): inside a life only, or also from its last frame to its first."""
    sampling: Literal["frames", "episodes"]
    """Every frame equally likely, or every episode equally likely and then a frame of it."""
    test_frames: Literal["all", "sampled"]
    """Score every test frame once, or a sample drawn as in training."""
    probe_weights: Literal["best", "last"]
    """Probe with the best validation weights, or with the last ones."""
    probe_init: Literal["zero", "uniform"]
    """Weights that the linear probe starts from: zero, or uniform as those of `nn.Linear`."""
    longest_dropped_episode: int = 64
    """Episodes of this many frames or fewer are dropped."""
    min_entropy: float = 0.6
    """Variables of lower entropy (nats) over the kept episodes are dropped."""
    pretrain_fractions: tuple[float, ...] = (0.8, 0.2)
    """Episodes for training and validation."""
    probe_fractions: tuple[float, ...] = (0.7, 0.1, 0.2)
    """Episodes for training, validation and test."""


FIXED = Protocol("fixed", "shuffled", "own", "within a life", "frames", "all", "best", "zero")
REFERENCE = Protocol("reference", "lane order", "stale", "wrapping", "episodes", "sampled", "last", "uniform")
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (FIXED, REFERENCE)}


def find_protocol(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise unknown_choice("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
