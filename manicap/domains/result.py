"""The result of a run: what was measured, and everything it depends on. Read and written only here.

result = RunResult.read(run_dir / "result.json")
result.evaluation.metrics["f1"]
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError
from manicap.core.results import read_result, write_result
from manicap.domains.base import Domain, Published, find_domain
from manicap.domains.evaluation import Evaluation
from manicap.domains.run_config import config_from_dict


@dataclass(frozen=True)
class TrainingFacts:
    """What a result records about the training."""

    steps: int
    epochs: int
    best_epoch: int
    weights: str
    """best or last."""
    precision: str
    """float32 or bfloat16."""


@dataclass
class RunResult:
    config: Any
    """The domain's `RunConfig`."""
    evaluation_config: Any
    """The domain's `EvaluationConfig`."""
    training: TrainingFacts
    encoder: str
    """Fingerprint of the weights that were probed."""
    evaluation: Any
    """An `Evaluation` of the domain."""
    versions: dict[str, str]
    predictions_sha256: str
    beside: dict[str, Any] = field(default_factory=dict)
    """Other evaluations of the job: `converged`, `supervised`."""
    differences_from_paper: tuple[str, ...] = ()

    @property
    def domain(self) -> Domain[Any, Any]:
        return find_domain(self.config.domain)

    @property
    def subject(self) -> str:
        return self.config.subject

    @property
    def published(self) -> list[Published]:
        """The paper's numbers for the subject."""
        return self.domain.published(self.config.full_subject)

    @property
    def method(self) -> str:
        return self.config.method

    @property
    def seed(self) -> int:
        return self.config.seed

    def to_dict(self) -> dict[str, Any]:
        return {
            "domain": self.config.domain,
            "subject": self.subject,
            "method": self.method,
            "seed": self.seed,
            "config": to_dict(self.config),
            "evaluation_config": to_dict(self.evaluation_config),
            "training": asdict(self.training),
            "encoder": self.encoder,
            "evaluation": self.evaluation.to_dict(),
            "versions": self.versions,
            "predictions_sha256": self.predictions_sha256,
            "beside": {name: other.to_dict() for name, other in self.beside.items()},
            "differences_from_paper": list(self.differences_from_paper),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "result") -> Self:
        try:
            config = config_from_dict(values["config"], source)
            domain = find_domain(config.domain)
            evaluation: type[Evaluation] = domain.result_type
            return cls(
                config=config,
                evaluation_config=from_dict(domain.evaluation_type, values["evaluation_config"], source),
                training=TrainingFacts(**values["training"]),
                encoder=values["encoder"],
                evaluation=evaluation.from_dict(values["evaluation"]),
                versions=values["versions"],
                predictions_sha256=values["predictions_sha256"],
                beside={name: evaluation.from_dict(other) for name, other in values["beside"].items()},
                differences_from_paper=tuple(values["differences_from_paper"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{source} is not a result of this version ({error!r}); evaluate again") from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the result in a file, or raise a `UserError` that says why it cannot be read."""
        return cls.from_dict(read_result(path), str(path))

    def write(self, path: Path) -> None:
        write_result(path, self.to_dict())
