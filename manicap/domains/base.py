"""What the trunk asks of a domain: one interface, in one place.

    class MyDomain(Domain[MyConfig, MyEvaluationConfig]):
        name, kinds, config_type, evaluation_type = ...
        def open_training(self, config, data_dir, device, rank): ...     # samples to train on
        def evaluate(self, probed, data_dir): ...                        # scores with their floors

A domain defines what a run learns from, how that is prepared, what is probed, and what the paper reports about it.
Training, probing, comparison, grids and pages look it up by name, `find_domain(config.domain)`, and contain no code for
a particular domain. `manicap.domains.atari` and `manicap.domains.images` are two domains; `tests/domains/toy.py` is the
smallest.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch

from manicap.algorithms.base import Method, MethodContext, PresetName, SampleKind
from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.core.registry import Registry
from manicap.play.places import PixelMap
from manicap.play.store import PlayStore

if TYPE_CHECKING:  # they look up domains by name
    from manicap.domains.evaluation import Evaluation, EvaluationConfig, Probed
    from manicap.domains.run_config import RunConfig
    from manicap.domains.samples import TrainingData

Config = TypeVar("Config", bound="RunConfig")
Probing = TypeVar("Probing", bound="EvaluationConfig")
Check = Callable[[Method, int], Mapping[str, float]]
"""Scores of a method after an epoch, in evaluation mode, to be logged; empty if none is due. The weights with the
lowest `error` are the best."""


@dataclass(frozen=True)
class NoOptions:
    """For a domain whose job has no options of its own."""


@dataclass(frozen=True)
class Companion:
    """Another measurement to show beside a run's scores."""

    name: str
    evaluation: "EvaluationConfig"
    config: "RunConfig | None" = None
    """A run to train for it; the job's own run if omitted."""


@dataclass(frozen=True)
class Published:
    """The paper's numbers for a method."""

    method: str
    scores: Mapping[str, tuple[float, float | None]]
    """Mean and standard deviation by metric; None where the paper prints none."""


@dataclass(frozen=True)
class PaperSetting:
    """How the paper trained and probed a method."""

    config: "RunConfig"
    evaluation: "EvaluationConfig"
    num_seeds: int | None
    """None if the paper does not say."""


@dataclass(frozen=True)
class ProbeCost:
    """What one way of probing costs."""

    num_encoded: int
    """Number of samples to encode."""
    features: str
    """Name of the features; a probe that shares them encodes nothing."""
    fit_seconds: Callable[[int], float]
    """Seconds of fitting as a function of the number of features."""


@dataclass(frozen=True)
class Pictures:
    """Images for a page."""

    train: Any
    """uint8 `[N, C, H, W]`, or anything indexed like it."""
    test: Any
    class_names: Sequence[str]
    fingerprint: str
    """As in `Evaluation.store`."""


class Domain(ABC, Generic[Config, Probing]):
    """`class MyDomain(Domain[MyConfig, MyEvaluationConfig])`."""

    name: ClassVar[str]
    """Its name in configs, on the command line and in runs: that of its entry point, or its import path."""
    title: ClassVar[str]
    """Its name in a sentence: Atari games, images."""
    kinds: ClassVar[tuple[SampleKind, ...]]
    """The kinds of its samples: methods of these kinds can learn from it."""
    subject_field: ClassVar[str]
    """The field of its config, and the flag, that says what to learn from: game, dataset."""
    example_subject: ClassVar[str]
    """Any existing subject, for the help of flags."""
    default_subject: ClassVar[str | None] = None
    """The default subject; None if the caller must give one."""
    subjects_title: ClassVar[str]
    """Several subjects, in the header of a narrow column: games, sets."""
    default_method: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    """What is measured, the most important first."""
    shared_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of a run's config that its evaluations inherit unless they set them."""
    methods_down: ClassVar[bool] = False
    """Whether a table of several subjects has one row per method, like the paper's."""
    source: ClassVar[str] = ""
    """Where its published numbers are from."""

    config_type: ClassVar[type["RunConfig"]]
    evaluation_type: ClassVar[type["EvaluationConfig"]]
    result_type: ClassVar[type["Evaluation"]]
    diagnosis_type: ClassVar[type]
    """A dataclass: what to measure a run on."""
    options_type: ClassVar[type] = NoOptions
    """A dataclass: what else a job can be asked for."""

    # Names and presets

    @abstractmethod
    def find_subject(self, name: str) -> str:
        """The canonical name of a game or dataset, or a `UserError`."""

    def subject_title(self, subject: str) -> str:
        """The subject as a table or a page prints it."""
        return Path(subject).name.replace("_", " ").title()

    def subject_lists(self) -> Mapping[str, Sequence[str]]:
        """Names that stand for several subjects, in grids."""
        return {}

    @abstractmethod
    def preset(self, name: PresetName, subject: str, method: str, chosen: Mapping[str, Any]) -> Config:
        """The preset's config. `chosen` holds values set by the caller, which may determine others."""

    @abstractmethod
    def preset_evaluation(self, name: PresetName) -> Probing: ...

    # Before training

    def problems(self, config: Config, evaluation: Probing, data_dir: Path) -> list[str]:
        """Values that are valid one by one but not together; reported before hours of training."""
        return []

    @abstractmethod
    def prepare(
        self,
        config: Config,
        evaluations: Sequence[Probing],
        data_dir: Path,
        workers: int | None,
        quiet: bool,
    ) -> None:
        """Collect, download or open what a run and its probes need, and refuse what is too small for them."""

    # Training

    @abstractmethod
    def open_training(self, config: Config, data_dir: Path, device: torch.device, rank: int) -> "TrainingData":
        """The samples to train on, which `prepare` has put on disk."""

    def check(self, config: Config, data_dir: Path) -> Check | None:
        """What to score after an epoch; None for nothing."""
        return None

    def context(self, config: Config) -> MethodContext:
        """What a method needs to know about data that may not be on disk yet: shapes, for costs and widths."""
        raise NotImplementedError

    # Probing

    def companions(self, config: Config, evaluation: Probing, options: Any) -> Sequence[Companion]:
        """What else to measure in a job, and show beside its scores."""
        return ()

    def weights(self, config: Config, evaluation: Probing, kept: str) -> str:
        """Which weights to probe: `chosen` or `last`. `kept` says which ones the run chose: best or last."""
        return "chosen"

    @abstractmethod
    def evaluate(self, probed: "Probed[Config, Probing]", data_dir: Path) -> "Evaluation":
        """Probe an encoder, the same network as initialised, and the most frequent answer."""

    @abstractmethod
    def diagnose(self, run: Any, config: Config, measured_on: Any, data_dir: Path, quiet: bool) -> Any:
        """Rank, spread, heads and capacity of a `FinishedRun`, measured on a `diagnosis_type`: a `RunDiagnosis`."""

    def pictures(self, config: Config, data_dir: Path) -> Pictures | None:
        """The images that were probed on, to be shown; None if they are not on disk, or there are none."""
        return None

    def play(self, config: Config, evaluation: Probing, data_dir: Path) -> PlayStore | None:
        """The play that was probed on, to be shown; None if it is not on disk, or there is none."""
        return None

    def places(self, evaluation: Probing, store: PlayStore, predictions: Any) -> Mapping[str, PixelMap]:
        """Where in the frames of a store objects are, by name, so that `StatePredictions` can be drawn into them."""
        return {}

    def test_features(self, config: Config, encoder: Any, probe_steps: int, data_dir: Path, quiet: bool) -> Any:
        """Features [n, F] of a probe's test samples, for drawing the charts of a run."""
        raise UserError(f"drawing the charts of runs on {self.title} is not supported")

    # For encoders that left the program

    def raw_frames(self, config: Config, evaluation: Probing, count: int, data_dir: Path, quiet: bool) -> Any:
        """Frames uint8 `[n, C, H, W]` as `manicap.load`'s module takes them, from those that a probe learns from."""
        raise UserError(f"frames of {self.title} are not available to other programs")

    def compare_encoders(
        self,
        config: Config,
        evaluation: Probing,
        encoders: Mapping[str, Callable[[Any], Any]],
        data_dir: Path,
        quiet: bool,
    ) -> tuple[str, dict[str, dict[str, float]]]:
        """The name of a quick probe, and the metrics of each function from raw frames to features under it."""
        raise UserError(f"only encoders of manicap are probed on {self.title}")

    # Identity of the data: None if it is not on disk; then results stand for the data that they name

    @abstractmethod
    def training_fingerprint(self, config: Config, data_dir: Path) -> str | None:
        """Fingerprint of the data to train on, as in `TrainingData.fingerprint`."""

    @abstractmethod
    def probing_fingerprint(self, config: Config, evaluation: Probing, data_dir: Path) -> str | None:
        """Fingerprint of the data to probe on, as in `Evaluation.store`."""

    # The paper

    def paper_setting(self, subject: str, method: str) -> PaperSetting | None:
        """How the paper trained and probed a method on a subject; None if it has no such number."""
        return None

    def published(self, subject: str) -> list[Published]:
        """The paper's numbers for a subject."""
        return []

    def published_sweep(self, subject: str, sweep: str, point: tuple[Any, ...]) -> float | None:
        """A number that the paper states for a point of a sweep."""
        return None

    def run_values(self, config: Config) -> dict[str, Any]:
        """A run's settings, to compare with the paper's."""
        return to_dict(config)

    def evaluation_values(self, evaluation: Probing, paper: Probing, config: Config) -> dict[str, Any]:
        """An evaluation's settings, to compare with the paper's: `auto` is replaced by what it stands for."""
        return to_dict(evaluation)

    # Costs

    @abstractmethod
    def samples_per_epoch(self, config: Config, data_dir: Path) -> int:
        """Samples per epoch, counted from the data, or estimated if it does not exist yet."""

    @abstractmethod
    def probe_cost(self, config: Config, evaluation: Probing) -> ProbeCost: ...

    def collect_seconds(self, runs: Sequence[tuple[Config, Sequence[Probing]]], data_dir: Path) -> float:
        """Seconds of one core to create the data that is not on disk."""
        return 0.0


DOMAINS: Registry[type[Domain[Any, Any]]] = Registry(
    "domain",
    Domain,
    {
        "atari": "manicap.domains.atari.domain:AtariDomain",
        "environments": "manicap.domains.environments.domain:EnvironmentDomain",
        "images": "manicap.domains.images.domain:ImageDomain",
    },
)


def find_domain(name: str) -> Domain[Any, Any]:
    """The domain of this name; `package.module:Name` for one from another package."""
    return DOMAINS[name]()


def loadable_domains() -> Iterator[tuple[str, type[Domain[Any, Any]]]]:
    """Our domains and those of installed packages. One that cannot be imported fails when named, not here."""
    for name in DOMAINS:
        with suppress(UserError):
            yield name, DOMAINS[name]


def subject_examples() -> list[str]:
    """Of each domain the flag of its subject with an example: `--game pong`."""
    flags = {domain.subject_field: domain.example_subject for _, domain in loadable_domains()}
    return [f"--{field.replace('_', '-')} {example}" for field, example in flags.items()]


def domain_of_field(field: str) -> str | None:
    """The domain whose subject this field or flag (`game`, `dataset`) gives."""
    found = [name for name, domain in loadable_domains() if domain.subject_field == field]
    if len(found) > 1:
        raise UserError(f"--{field} belongs to several domains ({', '.join(found)}): choose one with --domain")
    return found[0] if found else None
