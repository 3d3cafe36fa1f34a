"""The config of a run: everything its result depends on, in one file `config.toml`. Here that of an Atari run."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from manicap.atari.annotations import ANNOTATION_SETS, sets_with
from manicap.atari.games import find_game
from manicap.atari.protocol import ProtocolName
from manicap.atari.store import StoreConfig
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError, unknown_choice
from manicap.core.ranges import BatchSize, Count, Lanes, NonNegative, Positive, Seed, shown
from manicap.core.reading import read_toml_table
from manicap.methods import find_method
from manicap.methods.base import Domain, PresetName
from manicap.train.image_config import ImageConfig
from manicap.train.record import describe_differences, is_begun, read_record
from manicap.train.run_config import RunConfig, find_method_for


@dataclass(frozen=True, kw_only=True)
class Play:
    """The frames of a game to learn from."""

    game: str
    """Game: pong, ms_pacman, ALE/MsPacman-v5, ..."""
    collect_steps: Count = 100_000
    """Steps of play to learn from; 80 % of the lives train, 20 % validate."""
    lanes: Lanes = 8
    """Independent games played side by side."""
    protocol: ProtocolName = "fixed"
    """How lives are split and pairs drawn: fixed, or as the 2019 code did (reference)."""
    annotation_set: str = "corrected"
    """Labels, for methods that need them (supervised)."""


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig, Play):  # the fields of the last base come first
    """A pretraining run on the frames of a game."""

    domain: ClassVar[Domain] = "atari"

    method: str = "dim-c+"
    """Method; its own flags follow from it."""
    seed: Seed = 0
    """Seed of the games played, the initial weights, the batches and the noise."""
    batch_size: BatchSize = 64
    """Samples a step, over all processes."""
    learning_rate: Positive = 3e-4
    """Of Adam."""
    adam_epsilon: NonNegative = 1e-5
    """Of Adam."""
    max_epochs: Count = 100
    """Passes over the training split, at most."""
    patience: Count | None = 15
    """Stop after this many epochs without a better validation loss."""
    weights: Literal["best", "last"] = "best"
    """Keep the weights of the best validation loss, or the last ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "game", find_game(self.game).name)

    def problems(self) -> list[str]:
        found = []
        if self.collect_steps < self.lanes:
            found.append(f"collect_steps must be at least the number of lanes ({self.lanes}), got {self.collect_steps}")
        if self.annotation_set not in ANNOTATION_SETS:
            found.append(str(unknown_choice("annotation set", self.annotation_set, ANNOTATION_SETS)))
        elif find_method(self.method).needs_labels and self.annotation_set not in sets_with(find_game(self.game)):
            found.append(f"{self.game} is not annotated in {self.annotation_set!r}")
        return found

    @property
    def subject(self) -> str:
        return self.game

    @property
    def store_config(self) -> StoreConfig:
        return StoreConfig(self.game, self.collect_steps, self.seed, "pretrain", self.lanes)


def preset_config(name: PresetName, game: str, method: str) -> PretrainConfig:
    """quick: minutes on two cores. standard: an hour. paper: Tables 3 and 4 of arXiv 2405.13848, as they are."""
    settings = find_method_for("atari", method).settings_type.preset(name)
    common: dict[str, Any] = {"game": game, "method": method, "settings": settings}
    if name == "quick":
        return PretrainConfig(**common, collect_steps=12_000, max_steps=500)
    if name == "standard":
        return PretrainConfig(**common, collect_steps=50_000, max_steps=12_000)
    return PretrainConfig(**common)


CONFIGS: dict[Domain, type[RunConfig]] = {"atari": PretrainConfig, "images": ImageConfig}


def read_config(path: Path) -> PretrainConfig:
    """Read the `config.toml` of an Atari run."""
    config = read_run_config(path)
    if not isinstance(config, PretrainConfig):
        raise UserError(f"{path.parent} is a run on images ({config.subject}), not on an Atari game")
    return config


def read_run_config(path: Path) -> RunConfig:
    """Read `config.toml` of a run; the method named in it says which config and which settings to expect."""
    values = read_toml_table(path, "config file", remedy=f"is {path.parent} a run?")
    method = values.get("method", PretrainConfig.method)
    if not isinstance(method, str):
        raise UserError(f"{path}: method must be str, got {shown(method)}")
    config = plain_config(from_dict(typed_config(method), values, source=str(path)))
    if is_begun(path.parent):
        changes = describe_differences(read_record(path.parent).config, to_dict(config), "config")
        if changes:
            raise UserError(f"{path} has changed since the run was begun: {'; '.join(changes)}; undo it")
    return config


def typed_config(method: str) -> type[RunConfig]:
    """The config of the method's domain with the method's own `settings`: what command line and reader parse."""
    found = find_method(method)
    base = CONFIGS[found.domain]
    fields = [("settings", found.settings_type, field(default_factory=found.settings_type))]
    return dataclasses.make_dataclass(base.__name__, fields, bases=(base,), frozen=True, kw_only=True)


def plain_config(config: RunConfig) -> RunConfig:
    """The parsers build a config of the method's own type; the run's is the plain one with the same values."""
    plain = CONFIGS[config.domain]
    return plain(**{item.name: getattr(config, item.name) for item in dataclasses.fields(plain)})
