"""What runs on play have in common."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from manicap.algorithms.base import Settings
from manicap.algorithms.predictors import PairSettings
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Seed
from manicap.domains.run_config import RunConfig
from manicap.play.views import View


class PlayConfig(Protocol):
    """The part of a run's config that training on play needs."""

    @property
    def method(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def protocol(self) -> str: ...
    @property
    def annotation_set(self) -> str: ...
    @property
    def view(self) -> View:
        """What the encoder sees."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlayRunConfig(RunConfig):
    """How to train a method on play; the defaults are those of arXiv 2405.13848, Table 3, and of the 2019 code."""

    method: str = "dim-c+"
    """Method; determines which method-specific flags exist."""
    seed: Seed = 0
    """Random seed of the play, the initial weights, the batches and the noise."""
    batch_size: BatchSize = 64
    """Samples per step, over all processes."""
    learning_rate: Positive = 3e-4
    """Learning rate of Adam."""
    adam_epsilon: NonNegative = 1e-5
    """Epsilon of Adam."""
    max_epochs: Count = 100
    """Maximum number of passes over the training split."""
    patience: Count | None = 15
    """Stop after this many epochs without a lower validation loss; never if None."""
    weights: Literal["best", "last"] = "best"
    """Keep the weights with the lowest validation loss (best) or the last ones."""


ON_PAIRS: dict[str, Any] = {
    "batch_size": 48,
    "schedule": "cosine",
    "warmup_steps": 50,
    "patience": None,
    "weights": "last",
}
"""How quick and standard train methods on pairs of frames, as found in docs/training.md. A batch of 48 samples of three
frames has about as many frames as 64 pairs; a learning rate that falls to 0 must not be stopped on the way."""


def beyond_the_paper(settings: Settings, quick: bool) -> dict[str, Any]:
    """The budget of quick or standard, and how methods on pairs are trained in it."""
    on_pairs = isinstance(settings, PairSettings)
    budget = (600 if on_pairs else 500) if quick else 12_000
    return {**(ON_PAIRS if on_pairs else {}), "max_steps": budget}
