"""What an encoder is and how it scores: the facts that are saved with its weights."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manicap.core.config import config_problems, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.results import has_result
from manicap.domains.result import RunResult
from manicap.domains.run_config import RunConfig
from manicap.play.views import View


@dataclass(frozen=True)
class ProbedScore:
    """What a probe read from an encoder, beside its floors, and everything that it depends on."""

    metrics: dict[str, float]
    """Of the encoder, the most important first: labels_saved, r2, f1, accuracy."""
    bounds: dict[str, str]
    """Metrics that are only bounds, `at least` or `at most`."""
    floors: dict[str, dict[str, float]]
    """The same of what it is compared with: the untrained network, the most frequent answer."""
    layer: str
    """What was probed: output, backbone or local."""
    width: int
    """Number of features that the probe saw."""
    probe: str
    protocol: str
    annotation_set: str | None
    """Of state variables; None for classes."""
    seed: int
    counts: dict[str, int]
    """Sizes of the splits."""
    curves: dict[str, dict[int, float]]
    """Mean score by number of labels, of the encoder and its floors; empty for a probe without label curves."""
    versions: dict[str, str]
    differences_from_paper: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: RunResult, layer: str) -> "ProbedScore":
        evaluation = result.evaluation
        return cls(
            metrics=evaluation.metrics,
            bounds=evaluation.bounds,
            floors={name: dict(scores.metrics) for name, scores in evaluation.floors.items()},
            layer=layer,
            width=evaluation.width,
            probe=evaluation.probe,
            protocol=evaluation.protocol,
            annotation_set=getattr(evaluation, "annotation_set", None),
            seed=evaluation.seed,
            counts=dict(evaluation.counts),
            curves=evaluation.label_curves,
            versions=result.versions,
            differences_from_paper=result.differences_from_paper,
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ProbedScore":
        """The inverse of `asdict`, from JSON, whose keys are strings."""
        found = {
            "metrics": _numbers(values["metrics"]),
            "floors": {name: _numbers(floor) for name, floor in values["floors"].items()},
            "curves": {name: {int(n): float(y) for n, y in curve.items()} for name, curve in values["curves"].items()},
            "differences_from_paper": tuple(map(str, values["differences_from_paper"])),
        }
        return cls(**{**values, **found})


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()}


@dataclass(frozen=True)
class EncoderCard:
    """What an encoder was trained on and how, and what a probe reads from it."""

    method: str
    domain: str
    subject: str | None
    """The game, environment or dataset; None if the run's config was not kept with the encoder."""
    steps: int
    """Training steps; 0 for an untrained network."""
    epochs: int
    weights: str
    """Which weights these are: those of the best epoch or the last ones."""
    seed: int | None
    view: View | None = None
    """How frames were shown: gray or colour, how many, at which size; None for images."""
    score: ProbedScore | None = None
    """None if the run was never probed, or its probe saw other weights."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions with which it was trained."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the inverse of `from_dict`."""
        return asdict(self) | {"view": None if self.view is None else to_dict(self.view)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str) -> "EncoderCard":
        try:
            view, score = values["view"], values["score"]
            found = None if view is None else from_dict(View, view, source)
            card = cls(**{**values, "view": found, "score": None if score is None else ProbedScore.from_dict(score)})
            if problems := config_problems(card):
                raise ValueError("; ".join(problems))
            return card
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{source} has no card of this version ({error!r}); save the encoder again") from None


def training_card(description: Mapping[str, Any], config: RunConfig | None) -> EncoderCard:
    """The card of a run before it is probed, from `encoder.json` and the run's config."""
    identity = description["identity"]
    return EncoderCard(
        method=description["method"],
        domain=description["domain"],
        subject=None if config is None else config.subject,
        steps=description["steps"],
        epochs=description["epochs"],
        weights=description["weights"],
        seed=None if config is None else config.seed,
        view=None if config is None else config.view_of_input(description["input_shape"]),
        versions={name: str(identity[name]) for name in ("torch",) if name in identity},
    )


def read_score(run_dir: Path, sha256: str) -> ProbedScore | None:
    """The score in `result.json`; None if there is none, or if it is of other weights than those with this hash."""
    path = run_dir / "result.json"
    if not has_result(path):
        return None
    result = RunResult.read(path)
    probed, _, layer = result.encoder.partition("-")
    return ProbedScore.of(result, layer) if probed == sha256 else None
