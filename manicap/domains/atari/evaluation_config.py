"""How a run on an Atari game is probed."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manicap.algorithms.base import PresetName, ProbeInput
from manicap.atari.annotations import ANNOTATION_SETS
from manicap.atari.protocol import ProtocolName, find_protocol
from manicap.atari.store import StoreConfig
from manicap.core.errors import unknown_choice
from manicap.core.ranges import PlaySteps, Width
from manicap.core.registry import Known
from manicap.domains.evaluation import EvaluationConfig
from manicap.probing.linear import ProbeInit
from manicap.probing.probes import PROBES
from manicap.probing.rescaling import Rescaling


@dataclass(frozen=True)
class AtariEvaluationConfig(EvaluationConfig):
    """How to probe an encoder."""

    probe_steps: PlaySteps = 50_000
    """Steps of play for the probe: 70 % of the lives for training, 10 % for validation, 20 % for testing."""
    protocol: ProtocolName = "fixed"
    """fixed, or reference (as in the 2019 code), to compare with published numbers."""
    annotation_set: str = "corrected"
    """ari-2019 (used for the published tables), ari-2020 or corrected."""
    probe: Annotated[str, Known(PROBES)] = "ridge"
    """ridge (converged, by number of labels), discriminant (converged, exact values, all labels), linear (the 2019
    code's, for published numbers), logistic (converged, all labels), knn (nearest neighbours) or
    package.module:Name."""
    probe_input: ProbeInput = "output"
    """output: what the method's paper probes; backbone: the convolution features, equally wide for all methods; local:
    the feature map before them."""
    width: Width | None = None
    """Project the features to this width by a random orthogonal map, to compare at equal width."""
    rescaling: Rescaling = "none"
    """What to do to the features before they are probed: tenth, tenfold, standardised or whitened. A probe that can be
    trusted gives nearly the same score for the first three; the linear probe of 2019 does not."""
    probe_init: ProbeInit = "auto"
    """Initial weights of the linear probe; auto: zero under fixed, uniform under reference, as in the 2019 code."""
    probe_store: Literal["shared", "per seed"] = "shared"
    """Play that probes are trained and tested on: the same for all seeds, or new for each seed, as in the 2019 code."""

    @property
    def resolved_init(self) -> ProbeInit:
        """The initial weights of the linear probe."""
        return find_protocol(self.protocol).probe_init if self.probe_init == "auto" else self.probe_init

    def problems(self) -> list[str]:
        if self.annotation_set not in ANNOTATION_SETS:
            return [str(unknown_choice("annotation set", self.annotation_set, ANNOTATION_SETS))]
        return []

    def store_config(self, game: str, seed: int) -> StoreConfig:
        """The store of play on which runs with this seed are probed."""
        return StoreConfig(game, self.probe_steps, seed if self.probe_store == "per seed" else 0, "probe")


def preset_evaluation(name: PresetName) -> AtariEvaluationConfig:
    return AtariEvaluationConfig(probe_steps={"quick": 12_000, "standard": 30_000, "paper": 50_000}[name])
