"""Environments as a domain: any that gymnasium can make, or a store of frames recorded before."""

import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

from manicap.algorithms.base import PresetName
from manicap.core.memo import once
from manicap.domains.environments.config import EnvironmentConfig, environment_preset
from manicap.domains.environments.evaluation_config import EnvironmentEvaluationConfig, preset_evaluation
from manicap.domains.play.costs import frames_per_sample
from manicap.domains.play.domain import PlayDomain
from manicap.domains.play.samples import FrameSamples, windows_per_epoch
from manicap.environments.config import RecordConfig, store_path, with_file_hash
from manicap.environments.coordinates import check_variables, pixel_maps
from manicap.environments.integrity import open_environment_store
from manicap.environments.layout import Layout
from manicap.environments.recording import record_store
from manicap.environments.store import EnvironmentStore
from manicap.nn.encoders import NATURE_KERNELS, fitting_kernels
from manicap.play.places import PixelMap
from manicap.play.protocol import find_protocol
from manicap.play.splits import pretrain_splits
from manicap.play.store import PlayStore
from manicap.play.subset import divided
from manicap.play.views import View
from manicap.probing.state_result import StatePredictions

TRAIN_SHARE = 0.8
STEP_SECONDS = 1e-3
"""Assumed of an environment's step with its picture."""


class EnvironmentDomain(PlayDomain[EnvironmentConfig, EnvironmentEvaluationConfig]):
    name: ClassVar[str] = "environments"
    title: ClassVar[str] = "environments"
    subject_field: ClassVar[str] = "env"
    example_subject: ClassVar[str] = "CartPole-v1"
    subjects_title: ClassVar[str] = "envs"
    default_method: ClassVar[str] = "dim-c+"
    config_type = EnvironmentConfig
    evaluation_type = EnvironmentEvaluationConfig

    def find_subject(self, name: str) -> str:
        return name

    def subject_title(self, subject: str) -> str:
        return subject

    def preset(self, name: PresetName, subject: str, method: str, chosen: Mapping[str, Any]) -> EnvironmentConfig:
        return environment_preset(name, subject, method)

    def preset_evaluation(self, name: PresetName) -> EnvironmentEvaluationConfig:
        return preset_evaluation(name)

    def problems(self, config: EnvironmentConfig, evaluation: EnvironmentEvaluationConfig, data_dir: Path) -> list[str]:
        found, columns = super().problems(config, evaluation, data_dir), _layout(config, data_dir, evaluation).columns
        if evaluation.annotation_set == "recorded" and not columns:
            found.append(
                f"{config.env} says nothing of its state: put labels into info['labels'], name a function of (env,"
                " observation, info) with --labels package.module:function, or probe what was played"
                " (--annotation-set play)"
            )
        return found + check_variables(evaluation.coordinates, columns)

    def view(self, config: EnvironmentConfig, store: PlayStore) -> View:
        size = store.frames[:1].shape[1:]
        return config.view_of_frames((*size, 3) if store.has_colour else size)

    def expected_view(self, config: EnvironmentConfig, data_dir: Path) -> View:
        return config.view_of_frames(_layout(config, data_dir).frame_shape)

    def prepare(
        self,
        config: EnvironmentConfig,
        evaluations: Sequence[EnvironmentEvaluationConfig],
        data_dir: Path,
        workers: int | None,
        quiet: bool,
    ) -> None:
        if not quiet and config.settings.encoder == "fitting":
            view = self.expected_view(config, data_dir)
            network = "nature" if fitting_kernels(*view.shape[1:]) == NATURE_KERNELS else "small"
            _say_once(f"frames are {view}: using the network {network!r} (choose with --encoder)")
        super().prepare(config, evaluations, data_dir, workers, quiet)

    def training_store(
        self, config: EnvironmentConfig, data_dir: Path, workers: int | None = None, quiet: bool = True
    ) -> PlayStore:
        if config.own_store is not None:
            return divided(_opened(config.own_store))[0]
        return _recorded(config.store_config(config.collect_steps, config.seed, "pretrain"), data_dir, workers, quiet)

    def probe_store(
        self,
        config: EnvironmentConfig,
        evaluation: EnvironmentEvaluationConfig,
        data_dir: Path,
        workers: int | None = None,
        quiet: bool = True,
    ) -> PlayStore:
        if config.own_store is not None:
            return divided(_opened(config.own_store))[1]
        return _recorded(_probe_config(config, evaluation), data_dir, workers, quiet)

    def places(
        self, evaluation: EnvironmentEvaluationConfig, store: PlayStore, predictions: StatePredictions
    ) -> Mapping[str, PixelMap]:
        """As the user gives them; variables that hardly vary are not decoded, and have none."""
        height, width = store.frames[:1].shape[1:]
        return pixel_maps(evaluation.coordinates, predictions.variables, height, width)

    def training_fingerprint(self, config: EnvironmentConfig, data_dir: Path) -> str | None:
        if config.own_store is not None:
            return divided(_opened(config.own_store))[0].fingerprint
        return _fingerprint(config.store_config(config.collect_steps, config.seed, "pretrain"), data_dir)

    def probing_fingerprint(
        self, config: EnvironmentConfig, evaluation: EnvironmentEvaluationConfig, data_dir: Path
    ) -> str | None:
        if config.own_store is not None:
            return divided(_opened(config.own_store))[1].fingerprint
        return _fingerprint(_probe_config(config, evaluation), data_dir)

    def samples_per_epoch(self, config: EnvironmentConfig, data_dir: Path) -> int:
        """Estimated, if nothing is recorded yet, as if every lane were one episode."""
        frames = frames_per_sample(config.method, config.settings)
        if self.training_fingerprint(config, data_dir) is not None:
            store, rules = self.training_store(config, data_dir), find_protocol(config.protocol)
            return FrameSamples(store, pretrain_splits(store, rules, config.seed).train, rules, frames).per_epoch
        num_frames = int(TRAIN_SHARE * config.collect_steps)
        return num_frames if frames <= 2 else windows_per_epoch(config.lanes, num_frames, frames)

    def collect_seconds(self, runs: Sequence[tuple[Any, Sequence[Any]]], data_dir: Path) -> float:
        """Stores that several runs share are counted once."""
        wanted = {
            store
            for config, evaluations in runs
            if config.own_store is None
            for store in (
                config.store_config(config.collect_steps, config.seed, "pretrain"),
                *(_probe_config(config, evaluation) for evaluation in evaluations),
            )
        }
        return STEP_SECONDS * sum(store.steps for store in wanted if _fingerprint(store, data_dir) is None)


@cache
def _say_once(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _probe_config(config: EnvironmentConfig, evaluation: EnvironmentEvaluationConfig) -> RecordConfig:
    seed = config.seed if evaluation.probe_store == "per seed" else 0
    return config.store_config(evaluation.probe_steps, seed, "probe")


def _layout(config: EnvironmentConfig, data_dir: Path, *evaluations: EnvironmentEvaluationConfig) -> Layout:
    """What a step looks like: of what is recorded already, otherwise seen by beginning to play."""
    if config.own_store is None:
        training = config.store_config(config.collect_steps, config.seed, "pretrain")
        for store in (training, *(_probe_config(config, evaluation) for evaluation in evaluations)):
            path = store_path(with_file_hash(store), data_dir)
            if path.is_dir():
                return _opened(path).layout
    return config.layout


def _opened(path: Path) -> EnvironmentStore:
    return once(("environment store", path.absolute()), partial(open_environment_store, path))


def _recorded(config: RecordConfig, data_dir: Path, workers: int | None, quiet: bool) -> EnvironmentStore:
    return once(("recorded", config, data_dir), partial(record_store, config, data_dir, workers, quiet))


def _fingerprint(config: RecordConfig, data_dir: Path) -> str | None:
    path = store_path(with_file_hash(config), data_dir)
    return _opened(path).fingerprint if path.is_dir() else None
