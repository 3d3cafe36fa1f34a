"""How a run on images is probed."""

from dataclasses import dataclass
from typing import Literal

from manicap.algorithms.base import ProbeInput
from manicap.core.ranges import Count, VoteTemperature
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.images.config import ImageProtocolName

ProbeName = Literal["linear", "knn"]


@dataclass(frozen=True)
class ImageEvaluationConfig(EvaluationConfig):
    """How to probe an encoder of images. The defaults are Table 5 of arXiv 2405.13848."""

    protocol: ImageProtocolName = "clean"
    """clean: last weights, batch statistics frozen, nothing selected on test images. tsai2021: as in the code of arXiv
    2104.13712."""
    probe: ProbeName = "linear"
    """linear: one trained layer. knn: weighted votes of the nearest training images."""
    probe_input: ProbeInput = "output"
    """output: what the method's paper probes; backbone: the pooled features. For most methods they are the same."""
    probe_epochs: Count = 200
    """Epochs of the linear probe."""
    probe_batch_size: Count = 512
    """Images per step of the linear probe."""
    probe_features: Literal["auto", "cached", "augmented"] = "auto"
    """Features computed once (cached), or of new views in every epoch (augmented); auto: cached for clean."""
    neighbors: Count = 200
    """Number of nearest training images that vote (knn)."""
    neighbor_temperature: VoteTemperature = 0.5
    """Temperature that divides similarities before the exponential (knn)."""

    @property
    def is_augmented(self) -> bool:
        """Whether the linear probe trains on new views in every epoch."""
        return self.protocol == "tsai2021" if self.probe_features == "auto" else self.probe_features == "augmented"
