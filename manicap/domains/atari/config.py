"""The config of a run on an Atari game: the play it learns from, its method and its budget."""

from dataclasses import dataclass
from typing import Any

from manicap.algorithms import find_method
from manicap.algorithms.base import PresetName
from manicap.atari.annotations import ANNOTATION_SETS, sets_with
from manicap.atari.games import find_game
from manicap.atari.store import StoreConfig
from manicap.core.errors import unknown_choice
from manicap.core.ranges import Count, Lanes
from manicap.domains.play.config import PlayRunConfig, beyond_the_paper
from manicap.domains.run_config import Subject, find_method_for
from manicap.play.protocol import ProtocolName
from manicap.play.views import Stack, View


@dataclass(frozen=True, kw_only=True)
class Play(Subject):
    """The frames of a game to learn from."""

    game: str
    """Game: pong, ms_pacman, ALE/MsPacman-v5, ..."""
    collect_steps: Count = 100_000
    """Steps of play to learn from; 80 % of the lives are for training, 20 % for validation."""
    lanes: Lanes = 8
    """Number of independent games played in parallel."""
    colour: bool = False
    """Show the encoder red, green and blue instead of gray."""
    stack: Stack = 1
    """Number of the life's last frames that the encoder sees, as channels."""
    protocol: ProtocolName = "fixed"
    """How lives are split and pairs are drawn: fixed, or reference (as in the 2019 code)."""
    annotation_set: str = "corrected"
    """Labels for methods that require them (supervised)."""


@dataclass(frozen=True, kw_only=True)
class AtariConfig(PlayRunConfig, Play):  # the fields of the last base come first
    """A run on the frames of a game."""

    domain: str = "atari"
    """Domain."""

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
    def view(self) -> View:
        """What the encoder sees."""
        return View(self.colour, self.stack)

    @property
    def store_config(self) -> StoreConfig:
        return StoreConfig(self.game, self.collect_steps, self.seed, "pretrain", self.lanes)


def atari_preset(name: PresetName, game: str, method: str) -> AtariConfig:
    """quick: minutes on two cores. standard: an hour or two. paper: exactly Tables 3 and 4 of arXiv 2405.13848."""
    settings = find_method_for("atari", method).settings_type.preset(name)
    common: dict[str, Any] = {"game": game, "method": method, "settings": settings}
    if name == "paper":
        return AtariConfig(**common)
    common |= beyond_the_paper(settings, quick=name == "quick")
    return AtariConfig(**common, collect_steps=20_000 if name == "quick" else 50_000)
