"""What an evaluation is asked and what it leaves, whatever the domain: scores with everything they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self

from torch import nn

from manicap.algorithms.base import ProbeInput
from manicap.core.errors import UserError
from manicap.domains.base import Config, Probing

FORMAT = 2
TargetKind = Literal["class", "place", "number"]
"""What is probed for: one of several names; a place, where one pixel off is nearly right; a number."""


@dataclass(frozen=True)
class EvaluationConfig:
    """How to probe an encoder."""

    probe_input: ProbeInput = "output"
    """output is what the method's paper probes; backbone the features of the network itself."""


class Scores(Protocol):
    """Numbers of one encoder, or of what it is compared with."""

    @property
    def metrics(self) -> dict[str, float]:
        """The numbers that stand for all: accuracy, and the like."""
        ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self: ...


class Predictions(Protocol):
    """What a probe said of every test sample."""

    def save(self, path: Path) -> str:
        """Write one .npz file; its sha256."""
        ...


@dataclass(kw_only=True)
class Evaluation:
    """Scores of one encoder on one subject, and all that they depend on."""

    scores_type: ClassVar[type[Any]]
    probed_alike: ClassVar[tuple[str, ...]] = ("protocol", "probe", "probe_options", "store", "seed")
    """Fields in which evaluations that are shown side by side must agree."""

    subject: str
    """The game or the dataset."""
    protocol: str
    probe: str
    probe_options: dict[str, Any]
    width: int
    """Features that the probe saw."""
    seed: int
    store: str
    """Fingerprint of the data that was probed on."""
    encoder: str | None
    """Fingerprint of the encoder; None if it is a function that was given none."""
    threads: int
    counts: dict[str, int]
    """What the splits hold."""
    scores: Any
    seconds: dict[str, float]
    floors: dict[str, Any] = field(default_factory=dict)
    """Scores of what to compare with: the untrained network, the commonest answer."""
    predictions: Any = field(default=None, repr=False, compare=False)
    """On the test samples; not in the dict."""

    def add_floor(self, name: str, other: "Evaluation | Scores") -> None:
        """Show `other` beside the scores: an untrained encoder, a supervised one. It must have been probed alike."""
        if not isinstance(other, Evaluation):
            self.floors[name] = other
            return
        different = [key for key in self.probed_alike if getattr(self, key) != getattr(other, key)]
        if different:
            raise UserError(f"the floor {name!r} was measured with another {' and another '.join(different)}")
        if self.width != other.width:
            name = f"{name} ({other.width})"  # the number of features, which is not this evaluation's
        self.floors[name] = other.scores

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` undoes it."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "predictions"}
        floors = {name: scores.to_dict() for name, scores in self.floors.items()}
        return plain | {"format": FORMAT, "scores": self.scores.to_dict(), "floors": floors}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        if values.get("format") != FORMAT:
            raise UserError(f"an evaluation of format {values.get('format')} was given, this version reads {FORMAT}")
        known = {each.name for each in fields(cls)}
        plain = {key: value for key, value in values.items() if key in known}
        plain["scores"] = cls.scores_type.from_dict(values["scores"])
        plain["floors"] = {name: cls.scores_type.from_dict(scores) for name, scores in values["floors"].items()}
        return cls(**plain)


@dataclass(frozen=True)
class Probed(Generic[Config, Probing]):
    """An encoder to probe, with the run that it is of."""

    config: Config
    evaluation: Probing
    encoder: nn.Module
    """Samples in, features out; its `method` is the `Method`."""
    untrained: nn.Module
    """The same network as it was initialised."""
    fingerprint: str
    untrained_fingerprint: str
    cache_dir: Path | None = None
    """Where features are kept for the next probe."""
    quiet: bool = True
