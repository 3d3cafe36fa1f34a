"""The settings and the result of an evaluation in any domain: scores with everything they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self

from torch import nn

from manicap.algorithms.base import ProbeInput
from manicap.core.errors import UserError
from manicap.domains.base import Config, Probing

FORMAT = 4
"""3: regressions were free to extrapolate, so that their scores cannot stand beside those of today."""
TargetKind = Literal["class", "place", "number"]
"""What is decoded: one of several names; a place, where one pixel off is nearly right; a number."""


@dataclass(frozen=True)
class EvaluationConfig:
    """How to probe an encoder."""

    only_shown: ClassVar[tuple[str, ...]] = ()
    """Fields that change the page but no score."""

    probe_input: ProbeInput = "output"
    """Features to probe: output is what the method's paper probes; backbone is the network itself."""


class Scores(Protocol):
    """Scores of one encoder, or of what it is compared with."""

    @property
    def metrics(self) -> dict[str, float]:
        """The summary numbers: accuracy and the like."""
        ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self: ...


class Predictions(Protocol):
    """A probe's predictions for all test samples."""

    def save(self, path: Path) -> str:
        """Write one .npz file and return its sha256."""
        ...


@dataclass(kw_only=True)
class Evaluation:
    """Scores of one encoder on one subject, and everything they depend on."""

    scores_type: ClassVar[type[Any]]
    probed_alike: ClassVar[tuple[str, ...]] = ("protocol", "probe", "probe_options", "store", "seed")
    """Fields in which evaluations shown side by side must agree."""

    subject: str
    """The game or the dataset."""
    protocol: str
    probe: str
    probe_options: dict[str, Any]
    width: int
    """Number of features that the probe sees."""
    seed: int
    store: str
    """Fingerprint of the data that was probed on."""
    encoder: str | None
    """Fingerprint of the encoder; None for a function without one."""
    threads: int
    counts: dict[str, int]
    """Sizes of the splits."""
    scores: Any
    seconds: dict[str, float]
    floors: dict[str, Any] = field(default_factory=dict)
    """Scores to compare with: the untrained network, the most frequent answer."""
    predictions: Any = field(default=None, repr=False, compare=False)
    """Predictions for the test samples; not part of the dict."""

    @property
    def metrics(self) -> dict[str, float]:
        """The summary numbers, by which runs are compared."""
        return dict(self.scores.metrics)

    @property
    def bounds(self) -> dict[str, str]:
        """Metrics that are only bounds, `at least` or `at most`."""
        return {}

    @property
    def label_curves(self) -> dict[str, dict[int, float]]:
        """Mean score by number of labels, of the encoder and of each floor; empty for a probe without them."""
        return {}

    def add_floor(self, name: str, other: "Evaluation | Scores") -> None:
        """Show `other` beside the scores: an untrained or supervised encoder, probed in the same way."""
        if not isinstance(other, Evaluation):
            self.floors[name] = other
            return
        different = [key for key in self.probed_alike if getattr(self, key) != getattr(other, key)]
        if different:
            raise UserError(f"the floor {name!r} was measured with a different {' and a different '.join(different)}")
        if self.width != other.width:
            name = f"{name} ({other.width})"  # the number of features, which differs
        self.floors[name] = other.scores

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the inverse of `from_dict`."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "predictions"}
        floors = {name: scores.to_dict() for name, scores in self.floors.items()}
        return plain | {"format": FORMAT, "scores": self.scores.to_dict(), "floors": floors}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        if values.get("format") != FORMAT:
            raise UserError(f"the evaluation has format {values.get('format')}, but this version reads {FORMAT}")
        known = {each.name for each in fields(cls)}
        plain = {key: value for key, value in values.items() if key in known}
        plain["scores"] = cls.scores_type.from_dict(values["scores"])
        plain["floors"] = {name: cls.scores_type.from_dict(scores) for name, scores in values["floors"].items()}
        return cls(**plain)


@dataclass(frozen=True)
class Probed(Generic[Config, Probing]):
    """An encoder to probe, and the run it belongs to."""

    config: Config
    evaluation: Probing
    encoder: nn.Module
    """Samples in, features out; its `method` is the `Method`."""
    untrained: nn.Module
    """The same network as initialised; the encoder itself if its method trains nothing."""
    fingerprint: str
    untrained_fingerprint: str
    cache_dir: Path | None = None
    """Where features are kept for the next probe."""
    floors_dir: Path | None = None
    """Where what a probe found in the floors is kept for other runs."""
    quiet: bool = True
