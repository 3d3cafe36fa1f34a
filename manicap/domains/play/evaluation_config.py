"""How a run on play is probed, whatever was played."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manicap.algorithms.base import ProbeInput
from manicap.core.ranges import PlaySteps, Width
from manicap.core.registry import Known
from manicap.domains.evaluation import EvaluationConfig
from manicap.play.protocol import find_protocol
from manicap.probing.linear import ProbeInit
from manicap.probing.probes import PROBES
from manicap.probing.rescaling import Rescaling


@dataclass(frozen=True)
class PlayEvaluationConfig(EvaluationConfig):
    """How to probe an encoder."""

    probe_steps: PlaySteps = 50_000
    """Steps of play for the probe: 70 % of the lives for training, 10 % for validation, 20 % for testing."""
    protocol: str = "fixed"
    """How play is split and scored."""
    annotation_set: str = "corrected"
    """The state variables to probe."""
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
    """Rescaling of the features before probing: none, tenth (x 0.1), tenfold (x 10), standardised or whitened. A probe
    that does not depend on scale scores nearly the same with the first four; the linear probe of 2019 does not."""
    probe_init: ProbeInit = "auto"
    """Initial weights of the linear probe; auto: zero under fixed, uniform under reference, as in the 2019 code."""
    probe_store: Literal["shared", "per seed"] = "shared"
    """Play that probes are trained and tested on: the same for all seeds, or new for each seed, as in the 2019 code."""

    @property
    def resolved_init(self) -> ProbeInit:
        """The initial weights of the linear probe."""
        return find_protocol(self.protocol).probe_init if self.probe_init == "auto" else self.probe_init
