"""What is measured, and how: the named protocols.

`fixed` is correct; `reference` reproduces the 2019 code, so that published numbers can be compared; `plain` is `fixed`
for environments, whose episodes may be short and whose events may be rare. Every result carries the name of its
protocol.
"""

from dataclasses import dataclass, replace
from typing import Literal

from manicap.core.errors import unknown_choice

ProtocolName = Literal["fixed", "reference"]
"""Of games."""


@dataclass(frozen=True)
class Protocol:
    """Every choice in which protocols differ, and the numbers they share."""

    name: str
    split_order: Literal["shuffled", "lane order"]
    """How episodes are assigned to splits: shuffled by the seed, or in the order of the lanes."""
    first_label: Literal["own", "stale"]
    """Label of a life's first frame: its own, or that of the step that ended the life before."""
    pairs: Literal["within a life", "wrapping"]
    """Pairs (t, t+1): within a life only, or also from its last frame to its first."""
    sampling: Literal["frames", "episodes"]
    """Draw every frame with equal probability, or first an episode and then one of its frames."""
    test_frames: Literal["all", "sampled"]
    """Score every test frame once, or a sample drawn as in training."""
    probe_weights: Literal["best", "last"]
    """Use the probe weights that are best on validation data, or the last ones."""
    probe_init: Literal["zero", "uniform"]
    """Initial weights of the linear probe: zero, or uniform as in `nn.Linear`."""
    longest_dropped_episode: int = 64
    """Episodes of this many frames or fewer are dropped."""
    min_entropy: float = 0.6
    """Variables with lower entropy (in nats) over the kept episodes are dropped."""
    pretrain_fractions: tuple[float, ...] = (0.8, 0.2)
    """Fractions of episodes for training and validation."""
    probe_fractions: tuple[float, ...] = (0.7, 0.1, 0.2)
    """Fractions of episodes for training, validation and test."""


FIXED = Protocol("fixed", "shuffled", "own", "within a life", "frames", "all", "best", "zero")
REFERENCE = Protocol("reference", "lane order", "stale", "wrapping", "episodes", "sampled", "last", "uniform")
PLAIN = replace(FIXED, name="plain", longest_dropped_episode=1, min_entropy=0.1)
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (FIXED, REFERENCE, PLAIN)}


def find_protocol(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise unknown_choice("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
