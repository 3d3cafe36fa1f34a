"""What runs on play have in common."""

from typing import Any, Protocol

from manicap.algorithms.base import Settings
from manicap.algorithms.predictors import PairSettings
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
    budget = (700 if on_pairs else 500) if quick else 12_000
    return {**(ON_PAIRS if on_pairs else {}), "max_steps": budget}
