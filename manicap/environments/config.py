"""What to record, and where it is kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from manicap.core.config import config_hash
from manicap.core.errors import UserError, unknown_choice
from manicap.core.files import sha256_file
from manicap.core.ranges import Count, Lanes, Range, Seed, component
from manicap.core.reading import reason
from manicap.core.registry import FILES, is_plugin
from manicap.core.remote import local_directory, remote_of
from manicap.play.store import VariableKind

FOLDER = "environments"
"""Folder of a data directory."""
LOCAL = "local:"
"""Prefix of the name of a function that only the recording process had: it cannot be imported."""
DEFAULT_CATEGORY = "state"
SIDES = (48, 256)
"""Smallest and largest height and width of a frame."""
FrameSide = Annotated[int, Range(*SIDES)]


@dataclass(frozen=True)
class Asked:
    """What is played, and how long."""

    env: str
    """Environment: MiniGrid-DoorKey-8x8-v0, package:Name-v0, or package.module:maker, a function that makes one."""
    steps: Count = 20_000
    """Total steps, divided among the lanes; one frame is stored per step."""
    seed: Seed = 0
    """Lane i plays from the stream (seed, i), so the bytes do not depend on the number of workers."""
    purpose: Literal["pretrain", "probe"] = "pretrain"
    """Probe stores contain different episodes from pretraining stores with the same seed."""
    lanes: Lanes = 8
    """Independent environments played in parallel."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """How an environment is played, what is seen of it, and what is known of its state."""

    labels: str | None = None
    """State variables of a step: info (info["labels"]), observation (a vector), or package.module:function of (env,
    observation, info) that returns a dict. If omitted: info["labels"] if there is one, else the known state of MiniGrid
    and gymnasium's classic control."""
    label_names: tuple[str, ...] = ()
    """With --labels observation: the names of its entries."""
    label_kinds: tuple[str, ...] = ()
    """Kinds of variables that differ from the default of their type, such as x:place, door:class, speed:number."""
    label_categories: tuple[str, ...] = ()
    """Groups of variables whose scores are averaged, such as x:agent_localization; all others are in `state`."""
    policy: str = "random"
    """random, package.module:function from an observation to an action, actions:FILE.npy (repeated), or sb3:FILE.zip (a
    Stable-Baselines3 model)."""
    frames: str = "render"
    """What is stored: render, observation (an image), or observation.KEY of a dictionary."""
    colour: bool = True
    """Store red, green and blue if frames have them; --no-colour stores gray only."""
    frame_size: tuple[FrameSide, FrameSide] | None = None
    """Height and width to which frames are resized, each pixel the mean of the area that it covers."""
    options: str = "{}"
    """Keyword arguments of the environment, in JSON."""
    episode_limit: Count = 1000
    """Steps after which an episode that has not ended is cut."""


@dataclass(frozen=True)
class RecordConfig(Played, Asked):  # the fields of the last base come first
    """What to record. Equal configs refer to the same store."""

    source: str = ""
    """Set by manicap: sha256 of the file from which frames recorded elsewhere were imported."""

    def problems(self) -> list[str]:
        found = []
        if 1 <= self.steps < self.lanes:
            found.append(f"steps must be at least the number of lanes ({self.lanes}), got {self.steps}")
        if not self.env:
            found.append("env must name an environment")
        if not self.source:
            found += self._problems_of_play()
        for entry in (*self.label_kinds, *self.label_categories):
            if not all(entry.rpartition(":")[::2]):
                found.append(f"label_kinds and label_categories are written like x:place, got {entry!r}")
        unknown = {kind for _, _, kind in (each.rpartition(":") for each in self.label_kinds)} - {*KINDS}
        found += [str(unknown_choice("kind", kind, KINDS)) for kind in sorted(unknown)]
        return found + _option_problems(self.options)

    def _problems_of_play(self) -> list[str]:
        found = []
        if not (self.labels in (None, "info", "observation") or is_plugin(self.labels)):
            found.append(str(unknown_choice("labels", self.labels, ["info", "observation", "package.module:function"])))
        if self.label_names and self.labels != "observation":
            found.append("label_names require labels observation: other labels have their own names")
        if not (self.policy == "random" or self.policy.startswith(FILES) or is_plugin(self.policy)):
            choices = ["random", "package.module:function", "actions:FILE.npy", "sb3:FILE.zip"]
            found.append(str(unknown_choice("policy", self.policy, choices)))
        if self.frames not in ("render", "observation") and not self.frames.startswith("observation."):
            found.append(str(unknown_choice("frames", self.frames, ["render", "observation", "observation.KEY"])))
        return found

    @property
    def subject(self) -> str:
        """What was played, in one word: the environment without its package."""
        return self.env.removeprefix(LOCAL).rpartition(":")[2]

    @property
    def keywords(self) -> dict[str, object]:
        return dict(json.loads(self.options))

    @property
    def kinds(self) -> dict[str, str]:
        return _pairs(self.label_kinds)

    @property
    def categories(self) -> dict[str, str]:
        return _pairs(self.label_categories)

    def lane_steps(self, lane: int) -> int:
        """Steps of one lane; the remainder goes to the first lanes."""
        return self.steps // self.lanes + (lane < self.steps % self.lanes)

    def lane_start(self, lane: int) -> int:
        """Row of the lane's first frame."""
        return lane * (self.steps // self.lanes) + min(lane, self.steps % self.lanes)


KINDS: tuple[str, ...] = get_args(VariableKind)


def store_path(config: RecordConfig, data_dir: Path) -> Path:
    """Where the store of a config is kept; see `with_file_hash`."""
    return data_dir / FOLDER / component(config.env.replace(":", "."), "environment") / config_hash(config)


def on_disk(data_dir: Path | str) -> Path:
    """The data directory, which must be local."""
    directory = local_directory(data_dir)
    if (remote := remote_of(directory)) is not None:
        raise UserError(f"stores of environments are kept on disk, not at {remote.url}: give a directory as data_dir")
    return directory


def as_written(key: str, value: Any) -> Any:
    """A setting given in Python, as a config has it: dicts as JSON, or as pairs of a name and a word."""
    if not isinstance(value, Mapping):
        return value
    return json.dumps(value, sort_keys=True) if key == "options" else [f"{name}:{word}" for name, word in value.items()]


def with_file_hash(config: RecordConfig) -> RecordConfig:
    """The config with a hash of the policy file in the policy's name, so that other content makes another store."""
    if not config.policy.startswith(FILES):
        return config
    path, _, known = config.policy.partition("#")
    file = policy_file(config.policy)
    try:
        found = sha256_file(file)[:12]
    except OSError as error:
        raise UserError(f"cannot read the policy {file}: {reason(error)}") from None
    if known not in ("", found):
        raise UserError(f"{file} has changed since it was named as {config.policy}: name it without #{known}")
    return replace(config, policy=f"{path}#{found}")


def policy_file(policy: str) -> Path:
    return Path(policy.partition(":")[2].partition("#")[0])


def _pairs(entries: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, _, value in (entry.rpartition(":") for entry in entries)}


def _option_problems(options: str) -> list[str]:
    try:
        found = json.loads(options)
    except (ValueError, RecursionError) as error:
        return [f"options must be JSON, such as '{{\"size\": 8}}' ({reason(error)})"]
    return [] if isinstance(found, dict) else [f'options must be a JSON object, such as {{"size": 8}}, got {options}']
