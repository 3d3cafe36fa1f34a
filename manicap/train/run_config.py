"""What the configs of all runs have in common: the method, its optimizer and its budget."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from manicap.core.config import config_hash
from manicap.core.errors import UserError
from manicap.methods import find_method
from manicap.methods.base import Domain, Method, Settings

_COMMANDS: dict[Domain, str] = {"atari": "manicap run --game GAME", "images": "manicap images --dataset DATASET"}
_SUBJECTS: dict[Domain, str] = {"atari": "Atari games", "images": "images"}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A method, trained by the loop."""

    domain: ClassVar[Domain]

    method: str
    """Method; its own flags follow from it."""
    seed: int = 0
    """Seed of everything that is drawn."""
    batch_size: int
    """Samples a step, over all processes."""
    learning_rate: float
    """Of Adam."""
    adam_epsilon: float
    """Of Adam."""
    weight_decay: float | None = None
    """Of Adam, added to the gradient; none if absent."""
    max_epochs: int
    """Passes over the training split, at most."""
    max_steps: int | None = None
    """Training steps, at most; without it the epochs decide."""
    patience: int | None = None
    """Stop after this many epochs without a better validation; never if absent."""
    weights: Literal["best", "last"]
    """Keep the weights that validated best, or the last ones."""
    clip_gradient_norm: float | None = None
    """Clip the gradient to this norm."""
    settings: Settings = field(default_factory=Settings)
    """The method's own settings."""

    def __post_init__(self) -> None:
        method = find_method_for(self.domain, self.method)
        if type(self.settings) is Settings and method.settings_type is not Settings:
            object.__setattr__(self, "settings", method.settings_type())

    def problems(self) -> list[str]:
        found = []
        for name in ("batch_size", "max_epochs", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                found.append(f"{name} must be at least 1, got {value}")
        for name in ("max_steps", "clip_gradient_norm"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                found.append(f"{name} must be positive, got {value}")
        if self.learning_rate <= 0:
            found.append(f"learning_rate must be positive, got {self.learning_rate}")
        if self.weight_decay is not None and self.weight_decay < 0:
            found.append(f"weight_decay must not be negative, got {self.weight_decay}")
        return found

    @property
    def subject(self) -> str:
        """What is learned from: the game or the dataset."""
        raise NotImplementedError

    @property
    def run_name(self) -> str:
        """`pong-dim-c+-s0-1a2b3c4d`"""
        return f"{self.subject}-{self.method}-s{self.seed}-{config_hash(self)[:8]}"


def find_method_for(domain: Domain, name: str) -> type[Method]:
    """The method, which must learn from this domain."""
    method = find_method(name)
    if method.domain != domain:
        raise UserError(
            f"{name} learns from {_SUBJECTS[method.domain]}, not from {_SUBJECTS[domain]}:"
            f" {_COMMANDS[method.domain]} --method {name}"
        )
    return method
