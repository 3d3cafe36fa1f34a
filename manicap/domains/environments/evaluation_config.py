"""How a run on an environment is probed."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from manicap.algorithms.base import PresetName
from manicap.core.ranges import PlaySteps
from manicap.domains.play.evaluation_config import PlayEvaluationConfig
from manicap.environments.coordinates import coordinate_problems

Labels = Literal["recorded", "play"]


@dataclass(frozen=True)
class EnvironmentEvaluationConfig(PlayEvaluationConfig):
    """How to probe an encoder."""

    only_shown: ClassVar[tuple[str, ...]] = ("coordinates",)

    probe_steps: PlaySteps = 20_000
    """Steps of play for the probe: 70 % of the episodes for training, 10 % for validation, 20 % for testing. A store of
    your own is divided instead: 60 % of its episodes to learn from, 40 % to probe."""
    protocol: Literal["plain"] = "plain"
    """How play is split and scored: as for games, but short episodes and rare events count."""
    annotation_set: Labels = "recorded"
    """What to decode: recorded (the environment's state variables), or play (the next action and the sign of its
    reward), which needs no labels."""
    coordinates: tuple[str, ...] = ()
    """Variables to draw into the frames on the page: NAME:x:LEFT:RIGHT or NAME:y:TOP:BOTTOM, with the values that the
    variable has at the edges of the frame, such as ball_x:x:0:10 ball_y:y:10:0."""

    def problems(self) -> list[str]:
        found = coordinate_problems(self.coordinates)
        if self.coordinates and self.annotation_set != "recorded":
            found.append("coordinates require annotation_set recorded: they are state variables that are decoded")
        return found


def preset_evaluation(name: PresetName) -> EnvironmentEvaluationConfig:
    return EnvironmentEvaluationConfig(probe_steps={"quick": 8_000, "standard": 20_000, "paper": 50_000}[name])
