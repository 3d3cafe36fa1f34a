"""Atari games as a domain: frames of play to learn from, state variables to probe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from manicap.algorithms import find_method
from manicap.algorithms.base import PresetName
from manicap.atari.annotations import annotations, sets_with
from manicap.atari.games import GAME_LISTS, find_game
from manicap.atari.positions import estimate_positions
from manicap.atari.store import Store, store_path
from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.domains.atari import costs
from manicap.domains.atari.config import AtariConfig, atari_preset
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig, preset_evaluation
from manicap.domains.atari.stores import collected, store_fingerprint, stores_of
from manicap.domains.base import Companion, PaperSetting, Published
from manicap.domains.play.domain import PlayDomain
from manicap.domains.published import ATARI_SOURCE, published_scores, published_sweep
from manicap.play.places import PixelMap
from manicap.play.store import PlayStore
from manicap.probing.state_result import StatePredictions

ANNOTATIONS_OF_2019 = ("vae", "cpc", "st-dim")
"""Columns that the paper took from arXiv 1906.08226. The code of the others uses the table of 2020."""
POSITION_FRAMES = 1500
"""From which the places of objects are estimated."""
PAPER_SEEDS = 5


@dataclass(frozen=True)
class AtariOptions:
    """What else to measure."""

    converged: bool = True
    """With the probe linear: whether to also fit a converged logistic regression. Early stopping penalises slow-to-fit
    features, such as those of an untrained network."""
    ceiling: bool = False
    """Also train the same network on the labels, with the same budget, as a ceiling for the scores."""


class AtariDomain(PlayDomain[AtariConfig, AtariEvaluationConfig]):
    name: ClassVar[str] = "atari"
    title: ClassVar[str] = "Atari games"
    subject_field: ClassVar[str] = "game"
    example_subject: ClassVar[str] = "pong"
    subjects_title: ClassVar[str] = "games"
    default_method: ClassVar[str] = "dim-c+"
    source: ClassVar[str] = ATARI_SOURCE
    config_type = AtariConfig
    evaluation_type = AtariEvaluationConfig
    options_type = AtariOptions

    def find_subject(self, name: str) -> str:
        return find_game(name).name

    def subject_lists(self) -> Mapping[str, Sequence[str]]:
        return {f"{name}-games": games for name, games in GAME_LISTS.items()}

    def preset(self, name: PresetName, subject: str, method: str, chosen: Mapping[str, Any]) -> AtariConfig:
        return atari_preset(name, subject, method)

    def preset_evaluation(self, name: PresetName) -> AtariEvaluationConfig:
        return preset_evaluation(name)

    def problems(self, config: AtariConfig, evaluation: AtariEvaluationConfig, data_dir: Path) -> list[str]:
        found = []
        needed = {evaluation.annotation_set: None}
        if find_method(config.method).needs_labels:
            needed[config.annotation_set] = None
        for name in needed:
            try:
                annotations(find_game(config.game), name)
            except UserError as error:
                found.append(str(error))
        return [*found, *super().problems(config, evaluation, data_dir)]

    def training_store(
        self, config: AtariConfig, data_dir: Path, workers: int | None = None, quiet: bool = True
    ) -> Store:
        return collected(config.store_config, data_dir, workers, quiet)

    def probe_store(
        self,
        config: AtariConfig,
        evaluation: AtariEvaluationConfig,
        data_dir: Path,
        workers: int | None = None,
        quiet: bool = True,
    ) -> Store:
        return collected(evaluation.store_config(config.game, config.seed), data_dir, workers, quiet)

    def companions(
        self, config: AtariConfig, evaluation: AtariEvaluationConfig, options: AtariOptions
    ) -> Sequence[Companion]:
        found = []
        if options.converged and evaluation.probe == "linear":
            found.append(Companion("converged", replace(evaluation, probe="logistic")))
        if options.ceiling:
            settings = find_method("supervised").settings_type.preset("paper")
            found.append(Companion("supervised", evaluation, replace(config, method="supervised", settings=settings)))
        return found

    def places(
        self, evaluation: AtariEvaluationConfig, store: PlayStore, predictions: StatePredictions
    ) -> Mapping[str, PixelMap]:
        """Estimated from the frames; objects without a clear map have none."""
        some = np.linspace(0, len(predictions.rows) - 1, min(POSITION_FRAMES, len(predictions.rows))).astype(int)
        labels = {name: predictions.true[some, v] for v, name in enumerate(predictions.variables)}
        return estimate_positions(np.array(store.frames[predictions.rows[some]]), labels, predictions.variables)

    def training_fingerprint(self, config: AtariConfig, data_dir: Path) -> str | None:
        return store_fingerprint(config.store_config, data_dir)

    def probing_fingerprint(self, config: AtariConfig, evaluation: AtariEvaluationConfig, data_dir: Path) -> str | None:
        return store_fingerprint(evaluation.store_config(config.game, config.seed), data_dir)

    def paper_setting(self, subject: str, method: str) -> PaperSetting | None:
        if method not in {entry.method for entry in self.published(subject)}:
            return None
        run = replace(atari_preset("paper", subject, method), protocol="reference", weights="last")
        annotation_set = "ari-2019" if method in ANNOTATIONS_OF_2019 else "ari-2020"
        probed = AtariEvaluationConfig(
            protocol="reference", annotation_set=annotation_set, probe="linear", probe_store="per seed"
        )
        return PaperSetting(run, probed, PAPER_SEEDS)

    def published(self, subject: str) -> list[Published]:
        return published_scores(subject)

    def published_sweep(self, subject: str, sweep: str, point: tuple[Any, ...]) -> float | None:
        return published_sweep(subject, sweep, point)

    def evaluation_values(
        self, evaluation: AtariEvaluationConfig, paper: AtariEvaluationConfig, config: AtariConfig
    ) -> dict[str, Any]:
        """Annotation sets that agree for a game count as the paper's. Only a linear probe has initial weights."""
        values = to_dict(evaluation)
        values["probe_init"] = (evaluation if evaluation.probe == "linear" else paper).resolved_init
        if _are_equal_sets(config.game, evaluation.annotation_set, paper.annotation_set):
            values["annotation_set"] = paper.annotation_set
        return values

    def samples_per_epoch(self, config: AtariConfig, data_dir: Path) -> int:
        return costs.samples_per_epoch(config, data_dir)

    def collect_seconds(self, runs: Sequence[tuple[Any, Sequence[Any]]], data_dir: Path) -> float:
        """Stores that several runs share are counted once."""
        stores = {store for config, evaluations in runs for store in stores_of(config, evaluations)}
        missing = [store for store in stores if not store_path(store, data_dir).is_dir()]
        if not missing:
            return 0.0
        return costs.emulator_seconds(missing[0].game) * sum(store.steps for store in missing)


def _are_equal_sets(game: str, *names: str) -> bool:
    """Whether these annotation sets have the same variables for a game: in most games those of 2019 and 2020 do."""
    entry = find_game(game)
    return all(name in sets_with(entry) for name in names) and len({annotations(entry, name) for name in names}) == 1
