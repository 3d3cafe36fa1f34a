"""The part of a run's config that all domains share. `config.toml` holds everything that a result depends on."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from manicap.algorithms import find_method
from manicap.algorithms.base import Method, Settings
from manicap.core.config import config_hash, from_dict
from manicap.core.errors import UserError
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Range, Seed, component, shown
from manicap.domains.base import find_domain
from manicap.play.views import View

ScheduleName = Literal["constant", "cosine"]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What to learn from. A domain adds its own fields, which come first in the file."""

    domain: str
    """Domain: atari, environments, images, or one from another package."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(Subject):
    """How to train a method."""

    method: str
    """Method; determines which method-specific flags exist."""
    seed: Seed = 0
    """Random seed of everything that is drawn."""
    batch_size: BatchSize
    """Samples per step, over all processes."""
    learning_rate: Positive
    """Learning rate of Adam."""
    schedule: ScheduleName = "constant"
    """Learning rate over the run: constant, or cosine, which ends at 0 with the last step that the budgets allow."""
    warmup_steps: Annotated[int, Range(0, 10**9)] = 0
    """Steps over which the learning rate rises from 0 at the start."""
    adam_epsilon: NonNegative
    """Epsilon of Adam."""
    weight_decay: NonNegative | None = None
    """Weight decay of Adam, added to the gradient; no decay if None."""
    max_epochs: Count
    """Maximum number of passes over the training split."""
    max_steps: Count | None = None
    """Maximum number of training steps; limited only by the epochs if None."""
    patience: Count | None = None
    """Stop after this many epochs without a better validation; never if None."""
    weights: Literal["best", "last"]
    """Keep the weights that validated best, or the last ones."""
    clip_gradient_norm: Positive | None = None
    """Clip the gradient to this norm; no clipping if None."""
    settings: Settings = field(default_factory=Settings)
    """The method's own settings."""

    def __post_init__(self) -> None:
        method = find_method_for(self.domain, self.method)
        if type(self.settings) is Settings and method.settings_type is not Settings:
            object.__setattr__(self, "settings", method.settings_type())

    @property
    def subject(self) -> str:
        """What the run learns from, in one word: the game or the dataset."""
        raise NotImplementedError

    def view_of_input(self, input_shape: Sequence[int]) -> View | None:
        """How frames were shown to an encoder that takes `[C, H, W]`; None for images."""
        view = getattr(self, "view", None)
        return view if isinstance(view, View) else None

    @property
    def full_subject(self) -> str:
        """The same as given: for a folder its path, which may end in the name of a different dataset."""
        return str(getattr(self, find_domain(self.domain).subject_field))

    @property
    def run_name(self) -> str:
        """`pong-dim-c+-s0-1a2b3c4d`"""
        subject, method = component(self.subject, self.domain), component(self.method, "method")
        return f"{subject}-{method}-s{self.seed}-{config_hash(self)[:8]}"


def find_method_for(domain: str, name: str) -> type[Method]:
    """The method; the domain must yield its kind of samples."""
    method, found = find_method(name), find_domain(domain)
    if method.kind not in found.kinds:
        raise UserError(
            f"{name} learns from {method.kind}, but {found.title} yield {' and '.join(found.kinds)};"
            " 'manicap methods' shows what each method learns from"
        )
    return method


def typed_config(domain: str, method: str) -> type[RunConfig]:
    """The domain's config with the method's own `settings`, as parsed by the command line and the reader."""
    base: Any = find_domain(domain).config_type
    settings: Any = find_method_for(domain, method).settings_type
    return _with_settings(base, settings)


@cache  # to make a dataclass takes longer than to read a result
def _with_settings(base: type[RunConfig], settings: type[Settings]) -> type[RunConfig]:
    fields = [("settings", settings, field(default_factory=settings))]
    return dataclasses.make_dataclass(base.__name__, fields, bases=(base,), frozen=True, kw_only=True)


def plain_config(config: RunConfig) -> RunConfig:
    """The domain's plain config with the values of a parsed one, whose type is specific to the method."""
    plain = find_domain(config.domain).config_type
    return plain(**{item.name: getattr(config, item.name) for item in dataclasses.fields(plain)})


def config_from_dict(values: Mapping[str, Any], source: str = "config") -> RunConfig:
    """The inverse of `to_dict`: the domain and the method named in `values` determine the expected fields."""
    for name in ("domain", "method"):
        if name not in values:
            raise UserError(f"{source} names no {name}: it was written by an earlier version; train the run again")
        if not isinstance(values[name], str):
            raise UserError(f"{source}: {name} must be str, got {shown(values[name])}")
    return plain_config(from_dict(typed_config(values["domain"], values["method"]), values, source=source))
