"""What the configs of all runs have in common: the method, its optimizer and its budget."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from manicap.core.config import config_hash
from manicap.core.errors import UserError
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Seed, component
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
    seed: Seed = 0
    """Seed of everything that is drawn."""
    batch_size: BatchSize
    """Samples a step, over all processes."""
    learning_rate: Positive
    """Of Adam."""
    adam_epsilon: NonNegative
    """Of Adam."""
    weight_decay: NonNegative | None = None
    """Of Adam, added to the gradient; none if absent."""
    max_epochs: Count
    """Passes over the training split, at most."""
    max_steps: Count | None = None
    """Training steps, at most; without it the epochs decide."""
    patience: Count | None = None
    """Stop after this many epochs without a better validation; never if absent."""
    weights: Literal["best", "last"]
    """Keep the weights that validated best, or the last ones."""
    clip_gradient_norm: Positive | None = None
    """Clip the gradient to this norm."""
    settings: Settings = field(default_factory=Settings)
    """The method's own settings."""

    def __post_init__(self) -> None:
        method = find_method_for(self.domain, self.method)
        if type(self.settings) is Settings and method.settings_type is not Settings:
            object.__setattr__(self, "settings", method.settings_type())

    @property
    def subject(self) -> str:
        """What is learned from: the game or the dataset."""
        raise NotImplementedError

    @property
    def run_name(self) -> str:
        """`pong-dim-c+-s0-1a2b3c4d`"""
        return f"{component(self.subject, self.domain)}-{self.method}-s{self.seed}-{config_hash(self)[:8]}"


def find_method_for(domain: Domain, name: str) -> type[Method]:
    """The method, which must learn from this domain."""
    method = find_method(name)
    if method.domain != domain:
        raise UserError(
            f"{name} learns from {_SUBJECTS[method.domain]}, not from {_SUBJECTS[domain]}:"
            f" {_COMMANDS[method.domain]} --method {name}"
        )
    return method
