"""Play as a domain: frames to learn from, state variables to probe. Games and environments differ in their stores."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.algorithms.base import MethodContext
from manicap.algorithms.width import feature_width
from manicap.core.memo import once
from manicap.diagnostics.runs import RunDiagnosis
from manicap.domains.base import Config, Domain, ProbeCost, Probing
from manicap.domains.evaluation import Probed
from manicap.domains.play import costs
from manicap.domains.play.data import StoreData
from manicap.domains.play.diagnosis import PlayDiagnosisConfig, diagnose_play
from manicap.domains.play.evaluation_config import PlayEvaluationConfig
from manicap.play.protocol import find_protocol
from manicap.play.splits import probe_splits
from manicap.play.store import PlayStore
from manicap.play.views import View
from manicap.pretrained.encoder import PretrainedEncoder
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import Features, extract_features
from manicap.probing.pixels import PIXELS
from manicap.probing.play_bench import Extraction, Floor, PlayBench
from manicap.probing.probes import WITH_PIXELS
from manicap.probing.state_result import StateEvaluation
from manicap.train.finished import FinishedRun

QUICK_PROBE = "discriminant"
"""Converged, with all labels, in seconds."""


class PlayDomain(Domain[Config, Probing]):
    """A config of a run has a `view` and the fields of `PlayConfig`, an evaluation those of `PlayEvaluationConfig`."""

    kinds = ("frames",)
    metrics = ("labels_saved", "r2", "f1", "accuracy", "macro_f1")
    shared_fields = ("protocol", "annotation_set")
    evaluation_type: ClassVar[type[PlayEvaluationConfig]]
    result_type = StateEvaluation
    diagnosis_type = PlayDiagnosisConfig

    @abstractmethod
    def training_store(
        self, config: Config, data_dir: Path, workers: int | None = None, quiet: bool = True
    ) -> PlayStore:
        """What to learn from, made if it is not on disk."""

    @abstractmethod
    def probe_store(
        self, config: Config, evaluation: Any, data_dir: Path, workers: int | None = None, quiet: bool = True
    ) -> PlayStore:
        """What to probe on, likewise."""

    def view(self, config: Any, store: PlayStore) -> View:
        """What the encoder sees of a store."""
        return config.view

    def expected_view(self, config: Any, data_dir: Path) -> View:
        """The same before there is a store."""
        return config.view

    def bench(
        self, config: Any, evaluation: Any, data_dir: Path, workers: int | None = None, quiet: bool = True
    ) -> PlayBench:
        """The bench of a run, split once for all probes that see the same frames and labels."""
        store = self.probe_store(config, evaluation, data_dir, workers, quiet)
        asked = (evaluation.protocol, evaluation.annotation_set, config.seed, self.view(config, store))
        return once(("bench", store.path, store.fingerprint, *asked), lambda: PlayBench(store, *asked))

    def problems(self, config: Any, evaluation: Any, data_dir: Path) -> list[str]:
        if evaluation.width is None:
            return []
        context = MethodContext(self.expected_view(config, data_dir).shape, costs.NUM_VARIABLES)
        width = feature_width(config.method, config.settings, evaluation.probe_input, context)
        if evaluation.width <= width:
            return []
        return [f"width must be at most the {width} features of {config.method}, got {evaluation.width}"]

    def prepare(
        self, config: Config, evaluations: Sequence[Probing], data_dir: Path, workers: int | None, quiet: bool
    ) -> None:
        self.training_store(config, data_dir, workers, quiet)
        for evaluation in evaluations:
            self.bench(config, evaluation, data_dir, workers, quiet)

    def open_training(self, config: Any, data_dir: Path, device: torch.device, rank: int) -> StoreData:
        store = self.training_store(config, data_dir)
        return StoreData(config, store, device, rank, self.view(config, store))

    def context(self, config: Any) -> MethodContext:
        return MethodContext(config.view.shape, costs.NUM_VARIABLES)

    def evaluate(self, probed: Probed[Any, Any], data_dir: Path) -> StateEvaluation:
        evaluation = probed.evaluation
        bench = self.bench(probed.config, evaluation, data_dir, None, probed.quiet)
        encoder = untrained = FrameEncoder(probed.encoder, arrays="torch")
        if probed.untrained is not probed.encoder:
            untrained = FrameEncoder(probed.untrained, arrays="torch")
        floors: dict[str, Floor] = {"majority": "majority", "untrained": untrained}
        if evaluation.probe in WITH_PIXELS:
            floors[PIXELS] = PIXELS
        return bench.evaluate(
            encoder,
            evaluation.probe,
            floors=floors,
            fingerprints={encoder: probed.fingerprint, untrained: probed.untrained_fingerprint},
            extraction=Extraction(
                probed.cache_dir,
                floors_dir=probed.floors_dir,
                width=evaluation.width,
                rescaling=evaluation.rescaling,
                quiet=probed.quiet,
            ),
            init=evaluation.probe_init,
        )

    def raw_frames(self, config: Any, evaluation: Any, count: int, data_dir: Path, quiet: bool) -> NDArray[np.uint8]:
        bench = self.bench(config, evaluation, data_dir, None, quiet)
        rows = bench.splits.train.rows
        spaced = rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)]
        return bench.view.read(bench.store, spaced)

    def compare_encoders(
        self,
        config: Any,
        evaluation: Any,
        encoders: Mapping[str, Callable[[Any], Any]],
        data_dir: Path,
        quiet: bool,
    ) -> tuple[str, dict[str, dict[str, float]]]:
        bench = self.bench(config, evaluation, data_dir, None, quiet)
        (first, encoder), *others = ((name, FrameEncoder(each)) for name, each in encoders.items())
        found = bench.evaluate(encoder, QUICK_PROBE, floors=dict(others), extraction=Extraction(quiet=quiet))
        return QUICK_PROBE, {first: found.metrics, **{name: dict(found.floors[name].metrics) for name, _ in others}}

    def play(self, config: Config, evaluation: Probing, data_dir: Path) -> PlayStore | None:
        if self.probing_fingerprint(config, evaluation, data_dir) is None:
            return None
        return self.probe_store(config, evaluation, data_dir)

    def diagnose(self, run: FinishedRun, config: Any, measured_on: Any, data_dir: Path, quiet: bool) -> RunDiagnosis:
        store = self._probe_play(config, measured_on.probe_steps, data_dir, quiet)
        return diagnose_play(run, config, measured_on, store, self.view(config, store), self._rules(config), quiet)

    def test_features(
        self, config: Any, encoder: PretrainedEncoder, probe_steps: int, data_dir: Path, quiet: bool
    ) -> Features:
        store = self._probe_play(config, probe_steps, data_dir, quiet)
        rows = probe_splits(store, self._rules(config), config.annotation_set, config.seed).test.rows
        frozen = FrameEncoder(encoder, arrays="torch")
        return extract_features(frozen, store, rows, self.view(config, store), quiet=quiet)

    def probe_cost(self, config: Config, evaluation: Any) -> ProbeCost:
        features = f"{evaluation.probe_input} {evaluation.probe_steps} {evaluation.protocol}"
        return ProbeCost(evaluation.probe_steps, features, partial(costs.probe_seconds, evaluation))

    def _probe_play(self, config: Any, steps: int, data_dir: Path, quiet: bool) -> PlayStore:
        return self.probe_store(config, self.evaluation_type(probe_steps=steps), data_dir, quiet=quiet)

    def _rules(self, config: Any) -> Any:
        """Of diagnoses: those that correct the 2019 code's mistakes."""
        return find_protocol(self.evaluation_type().protocol)
