"""How a run on an Atari game is probed."""

from dataclasses import dataclass

from manicap.algorithms.base import PresetName
from manicap.atari.annotations import ANNOTATION_SETS
from manicap.atari.store import StoreConfig
from manicap.core.errors import unknown_choice
from manicap.domains.play.evaluation_config import PlayEvaluationConfig
from manicap.play.protocol import ProtocolName


@dataclass(frozen=True)
class AtariEvaluationConfig(PlayEvaluationConfig):
    """How to probe an encoder."""

    protocol: ProtocolName = "fixed"
    """fixed, or reference (as in the 2019 code), to compare with published numbers."""
    annotation_set: str = "corrected"
    """ari-2019 (used for the published tables), ari-2020 or corrected."""

    def problems(self) -> list[str]:
        if self.annotation_set not in ANNOTATION_SETS:
            return [str(unknown_choice("annotation set", self.annotation_set, ANNOTATION_SETS))]
        return []

    def store_config(self, game: str, seed: int) -> StoreConfig:
        """The store of play on which runs with this seed are probed."""
        return StoreConfig(game, self.probe_steps, seed if self.probe_store == "per seed" else 0, "probe")


def preset_evaluation(name: PresetName) -> AtariEvaluationConfig:
    return AtariEvaluationConfig(probe_steps={"quick": 12_000, "standard": 30_000, "paper": 50_000}[name])
