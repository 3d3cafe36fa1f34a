"""The config of a pretraining run: everything its result depends on, in one file `config.toml`."""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from manicap.atari.games import find_game
from manicap.atari.protocol import ProtocolName
from manicap.atari.store import StoreConfig
from manicap.core.config import config_hash, from_dict
from manicap.core.errors import UserError
from manicap.methods import find_method
from manicap.methods.base import PresetName, Settings


@dataclass(frozen=True)
class PretrainConfig:
    """A pretraining run."""

    game: str
    """Game: pong, ms_pacman, ALE/MsPacman-v5, ..."""
    method: str = "dim-c+"
    """Method; its own flags follow from it."""
    seed: int = 0
    """Seed of the games played, the initial weights, the batches and the noise."""
    collect_steps: int = 100_000
    """Steps of play to learn from; 80 % of the lives train, 20 % validate."""
    lanes: int = 8
    """Independent games played side by side."""
    protocol: ProtocolName = "fixed"
    """How lives are split and pairs drawn: fixed, or as the 2019 code did (reference)."""
    annotation_set: str = "corrected"
    """Labels, for methods that need them (supervised)."""
    batch_size: int = 64
    """Samples a step, over all processes."""
    learning_rate: float = 3e-4
    """Of Adam."""
    adam_epsilon: float = 1e-5
    """Of Adam."""
    max_epochs: int = 100
    """Passes over the training split, at most."""
    max_steps: int | None = None
    """Training steps, at most; without it the epochs decide."""
    patience: int = 15
    """Stop after this many epochs without a better validation loss."""
    weights: Literal["best", "last"] = "best"
    """Keep the weights of the best validation loss, or the last ones."""
    clip_gradient_norm: float | None = None
    """Clip the gradient to this norm."""
    settings: Settings = field(default_factory=Settings)
    """The method's own settings."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", find_game(self.game).name)
        expected = find_method(self.method).settings_type
        if type(self.settings) is Settings and expected is not Settings:
            object.__setattr__(self, "settings", expected())

    def problems(self) -> list[str]:
        found = []
        for name in ("batch_size", "max_epochs", "patience"):
            if getattr(self, name) < 1:
                found.append(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("max_steps", "clip_gradient_norm"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                found.append(f"{name} must be positive, got {value}")
        if self.learning_rate <= 0:
            found.append(f"learning_rate must be positive, got {self.learning_rate}")
        return found + self.store_config.problems()

    @property
    def store_config(self) -> StoreConfig:
        return StoreConfig(self.game, self.collect_steps, self.seed, "pretrain", self.lanes)

    @property
    def run_name(self) -> str:
        """`pong-dim-c+-s0-1a2b3c4d`"""
        return f"{self.game}-{self.method}-s{self.seed}-{config_hash(self)[:8]}"


def preset_config(name: PresetName, game: str, method: str) -> PretrainConfig:
    """quick: minutes on two cores. standard: an hour. paper: Tables 3 and 4 of arXiv 2405.13848, as they are."""
    settings = find_method(method).settings_type.preset(name)
    common: dict[str, Any] = {"game": game, "method": method, "settings": settings}
    if name == "quick":
        return PretrainConfig(**common, collect_steps=12_000, max_steps=500)
    if name == "standard":
        return PretrainConfig(**common, collect_steps=50_000, max_steps=12_000)
    return PretrainConfig(**common)


def read_config(path: Path) -> PretrainConfig:
    """Read `config.toml`; the method named in it says which settings to expect."""
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"there is no config file {path}: is {path.parent} a run?") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    method = values.get("method", PretrainConfig.method)
    config = from_dict(typed_config(method), values, source=str(path))
    return PretrainConfig(**{item.name: getattr(config, item.name) for item in dataclasses.fields(config)})


def typed_config(method: str) -> type[PretrainConfig]:
    """`PretrainConfig` whose `settings` are those of the method: what the command line and the reader parse."""
    settings_type = find_method(method).settings_type
    fields = [("settings", settings_type, field(default_factory=settings_type))]
    return dataclasses.make_dataclass("PretrainConfig", fields, bases=(PretrainConfig,), frozen=True)
