"""The config of a run: everything its result depends on, in one file `config.toml`. Here what all domains share."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from manicap.algorithms import find_method
from manicap.algorithms.base import Method, Settings
from manicap.core.config import config_hash, from_dict
from manicap.core.errors import UserError
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Seed, component, shown
from manicap.domains.base import find_domain


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is learned from. A domain adds its own fields, which come first in the file."""

    domain: str
    """Domain: atari, images, or one of another package."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(Subject):
    """A method, trained by the loop."""

    method: str
    """Method; its own flags follow from it."""
    seed: Seed = 0
    """Seed of everything that is drawn."""
    batch_size: BatchSize
    """Samples per step, over all processes."""
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
        """What is learned from, in a word: the game or the dataset."""
        raise NotImplementedError

    @property
    def full_subject(self) -> str:
        """The same as it was given: a folder's path, which may end in the name of a dataset that it is not."""
        return str(getattr(self, find_domain(self.domain).subject_field))

    @property
    def run_name(self) -> str:
        """`pong-dim-c+-s0-1a2b3c4d`"""
        subject, method = component(self.subject, self.domain), component(self.method, "method")
        return f"{subject}-{method}-s{self.seed}-{config_hash(self)[:8]}"


def find_method_for(domain: str, name: str) -> type[Method]:
    """The method, whose samples must be of a kind that the domain yields."""
    method, found = find_method(name), find_domain(domain)
    if method.kind not in found.kinds:
        raise UserError(
            f"{name} learns from {method.kind}, and {found.title} yield {' and '.join(found.kinds)};"
            " 'manicap methods' shows what each method learns from"
        )
    return method


def typed_config(domain: str, method: str) -> type[RunConfig]:
    """The config of the domain with the method's own `settings`: what command line and reader parse."""
    base: Any = find_domain(domain).config_type
    settings: Any = find_method_for(domain, method).settings_type
    return _with_settings(base, settings)


@cache  # to make a dataclass takes longer than to read a result
def _with_settings(base: type[RunConfig], settings: type[Settings]) -> type[RunConfig]:
    fields = [("settings", settings, field(default_factory=settings))]
    return dataclasses.make_dataclass(base.__name__, fields, bases=(base,), frozen=True, kw_only=True)


def plain_config(config: RunConfig) -> RunConfig:
    """The parsers build a config of the method's own type; the run's is the plain one with the same values."""
    plain = find_domain(config.domain).config_type
    return plain(**{item.name: getattr(config, item.name) for item in dataclasses.fields(plain)})


def config_from_dict(values: Mapping[str, Any], source: str = "config") -> RunConfig:
    """Undo `to_dict`: the domain and the method named in `values` say which fields to expect."""
    for name in ("domain", "method"):
        if name not in values:
            raise UserError(f"{source} names no {name}: it was written by an earlier version; train the run again")
        if not isinstance(values[name], str):
            raise UserError(f"{source}: {name} must be str, got {shown(values[name])}")
    return plain_config(from_dict(typed_config(values["domain"], values["method"]), values, source=source))
