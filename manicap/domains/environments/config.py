"""The config of a run on an environment: the play it learns from, its method and its budget."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from manicap.algorithms.base import PresetName
from manicap.core.ranges import Count, Lanes, component
from manicap.domains.environments.evaluation_config import Labels
from manicap.domains.play.config import PlayRunConfig, beyond_the_paper
from manicap.domains.run_config import Subject, find_method_for
from manicap.environments.config import Played, RecordConfig
from manicap.environments.integrity import open_environment_store
from manicap.environments.layout import Layout, survey
from manicap.environments.making import NONE_OWN
from manicap.play.integrity import MANIFEST
from manicap.play.views import Stack, View


@dataclass(frozen=True, kw_only=True)
class Environment(Subject):
    """What to play."""

    env: str
    """Environment: MiniGrid-DoorKey-8x8-v0, package.module:maker, or the directory of a store."""
    collect_steps: Count = 100_000
    """Steps of play to learn from; 80 % of the episodes are for training, 20 % for validation."""
    lanes: Lanes = 8
    """Number of environments played in parallel."""


@dataclass(frozen=True, kw_only=True)
class Seen(Played, Environment):  # the fields of the last base come first
    """How it is played, and what the encoder sees of it."""

    stack: Stack = 1
    """Number of the episode's last frames that the encoder sees, as channels. A single frame shows no velocities."""
    protocol: Literal["plain"] = "plain"
    """How episodes are split and pairs are drawn."""
    annotation_set: Labels = "recorded"
    """Labels for methods that require them (supervised)."""


SHARED = ("env", "lanes", *(field.name for field in fields(Played)))
"""Fields of a recording that a run's config has too."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig(PlayRunConfig, Seen):
    """A run on the frames of an environment."""

    domain: str = "environments"
    """Domain."""

    def problems(self) -> list[str]:
        if self.own_store is None:
            return self.store_config(self.collect_steps, self.seed, "pretrain").problems()
        given = [each.name for each in fields(Played) if getattr(self, each.name) != each.default]
        given = [name for name in given if name != "colour"]  # of the view, too
        settings = f"{', '.join(given)} {'is a setting' if len(given) == 1 else 'are settings'} of a recording"
        return [f"{settings}, and {self.env} is recorded already"] if given else []

    @property
    def own_store(self) -> Path | None:
        """The directory of a store that is learned from and probed, if there is one."""
        path = Path(self.env)
        return path if (path / MANIFEST).is_file() else None

    @property
    def subject(self) -> str:
        path = self.own_store
        return component(self.env.rpartition(":")[2] if path is None else open_environment_store(path).subject, "env")

    @property
    def view(self) -> View:
        """What the encoder sees. Size and colours of frames are known only from the environment itself."""
        return self.view_of_frames(self.layout.frame_shape)

    def view_of_frames(self, frame_shape: Sequence[int]) -> View:
        """What the encoder sees of frames [H, W] or [H, W, 3]; gray ones are seen in gray."""
        height, width, *channels = frame_shape
        return View(self.colour and bool(channels), self.stack, recorded=(height, width))

    def view_of_input(self, input_shape: Sequence[int]) -> View:
        """What an encoder saw, from its own shape: a finished run does not need its environment."""
        channels, *size = input_shape
        return self.view_of_frames([*size, 3] if channels == 3 * self.stack else size)

    @property
    def layout(self) -> Layout:
        """What a step of it looks like, seen by beginning to play."""
        if (path := self.own_store) is not None:
            return open_environment_store(path).layout
        return _layout(self.store_config(self.lanes, self.seed, "pretrain"))

    def store_config(self, steps: int, seed: int, purpose: Literal["pretrain", "probe"]) -> RecordConfig:
        return RecordConfig(steps=steps, seed=seed, purpose=purpose, **{name: getattr(self, name) for name in SHARED})


@cache
def _layout(config: RecordConfig) -> Layout:
    return survey(config, NONE_OWN).layout


def environment_preset(name: PresetName, env: str, method: str) -> EnvironmentConfig:
    """quick: minutes on two cores. standard: an hour or two. paper: Tables 3 and 4 of arXiv 2405.13848, its network
    aside."""
    settings = replace(find_method_for("environments", method).settings_type.preset(name), encoder="fitting")
    common: dict[str, Any] = {"env": env, "method": method, "settings": settings}
    if name == "paper":
        return EnvironmentConfig(**common)
    common |= beyond_the_paper(settings, quick=name == "quick")
    return EnvironmentConfig(**common, collect_steps=20_000 if name == "quick" else 50_000)
