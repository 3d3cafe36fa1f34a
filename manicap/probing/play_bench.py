"""Probe the state variables of a game: a bench to measure on, and one call.

bench = PlayBench(store, "fixed", "corrected")        # a store, split, with its labels
bench.evaluate(encoder, "linear", floors={"majority": "majority", "untrained": untrained})
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manicap.atari.annotations import DISPLAY, MISC
from manicap.atari.annotations import categories as categories_of
from manicap.atari.games import find_game
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import Part, probe_splits, read_labels
from manicap.atari.store import Store
from manicap.core.config import check_config, checked
from manicap.core.errors import UserError
from manicap.core.ranges import Count, Seed, Width
from manicap.domains.evaluation import TargetKind
from manicap.probing.features import Features, FrameEncoder, extract_all, project_features
from manicap.probing.majority import MajorityClass
from manicap.probing.metrics import Labels, Scores, score_labels
from manicap.probing.probes import Probe, ProbeBuilder, find_probe
from manicap.probing.sampling import ProbeData, scored_rows
from manicap.probing.state_result import StateEvaluation, StatePredictions

TEST_BATCH = 64
"""The reference protocol samples the test set in whole batches of the probe's size."""

Floor = str | FrameEncoder | StateEvaluation
"""`majority`, another encoder, which is probed in the same way, or an earlier result."""


@dataclass(frozen=True)
class Extraction:
    """How features are computed."""

    cache_dir: Path | None = None
    """Where they are kept for the next probe; not kept if omitted."""
    batch_size: Count = 128
    """Number of frames encoded at a time."""
    width: Width | None = None
    """Project them to this many dimensions by a seeded random orthogonal map."""
    quiet: bool = False


class PlayBench:
    """What encoders of a game are measured on: the frames of a store, split, with their labels.

    Raises a `UserError` if the store is too small to split or has no variable to score.
    """

    @checked
    def __init__(
        self, store: Store, protocol: str = "fixed", annotation_set: str = "corrected", seed: Seed = 0
    ) -> None:
        self.store, self.annotation_set, self.seed = store, annotation_set, seed
        self.protocol = find_protocol(protocol)
        self.splits = probe_splits(store, self.protocol, annotation_set, seed)
        self.parts = (self.splits.train, self.splits.val, self.splits.test)
        self.rows = np.concatenate([part.rows for part in self.parts])
        self.labels = [self._labels(part) for part in self.parts]
        everything = categories_of(find_game(store.config.game), annotation_set)
        present = {name: tuple(v for v in found if v in self.splits.variables) for name, found in everything.items()}
        self.categories = {name: found for name, found in present.items() if found}
        if not self.categories:
            raise UserError(
                f"none of the variables that vary in {store.path} ({', '.join(self.splits.variables)}) is in a category"
                f" of {annotation_set}; collect more steps (now {store.config.steps})"
            )

    def evaluate(
        self,
        encoder: FrameEncoder,
        probe: str | ProbeBuilder = "linear",
        *,
        floors: Mapping[str, Floor] | None = None,
        fingerprints: Mapping[FrameEncoder, str] | None = None,
        extraction: Extraction = Extraction(),  # noqa: B008 - frozen
        init: str = "auto",
    ) -> StateEvaluation:
        """Scores of an encoder and its floors, with everything they depend on. The frames are read once for all."""
        check_config(extraction)
        floors = {"majority": "majority"} if floors is None else floors
        encoders = [encoder, *(floor for floor in floors.values() if isinstance(floor, FrameEncoder))]
        named = {each: (fingerprints or {}).get(each) for each in encoders}
        start = time.perf_counter()
        features = extract_all(
            list(named.items()),
            self.store,
            self.rows,
            extraction.cache_dir,
            extraction.batch_size,
            extraction.quiet,
        )
        seconds = (time.perf_counter() - start) / len(named)
        builder = find_probe(probe, self.store.config.steps, init) if isinstance(probe, str) else probe
        measured = {
            each: self._measure(each, found, named[each], seconds, builder, extraction)
            for each, found in zip(named, features, strict=True)
        }
        evaluation = measured[encoder]
        for name, floor in floors.items():
            if isinstance(floor, FrameEncoder):
                evaluation.add_floor(name, measured[floor])
            elif isinstance(floor, StateEvaluation):
                evaluation.add_floor(name, floor)
            else:
                no_features = np.zeros((len(self.rows), 1), np.float32)
                evaluation.floors[name] = self.score(MajorityClass(), no_features)[0]
        return evaluation

    def _measure(
        self,
        encoder: FrameEncoder,
        features: Features,
        fingerprint: str | None,
        encoding_seconds: float,
        builder: ProbeBuilder,
        extraction: Extraction,
    ) -> StateEvaluation:
        start, feature_width = time.perf_counter(), features.shape[1]
        if extraction.width is not None:
            features = project_features(features, extraction.width, self.seed)
        projected = time.perf_counter()
        probe = builder(self.protocol, self.seed, extraction.quiet)
        scores, decoded = self.score(probe, features)
        test = self.splits.test
        return StateEvaluation(
            subject=self.store.config.game,
            protocol=self.protocol.name,
            annotation_set=self.annotation_set,
            probe=probe.name,
            probe_options=asdict(probe.config),
            width=features.shape[1],
            feature_width=feature_width,
            seed=self.seed,
            steps=self.store.config.steps,
            store=self.store.fingerprint,
            encoder=fingerprint or encoder.fingerprint(),
            threads=torch.get_num_threads(),
            counts=self.splits.counts,
            categories=self.categories,
            kinds=self.kinds,
            scores=scores,
            seconds={"features": encoding_seconds + projected - start, "probe": time.perf_counter() - projected},
            predictions=StatePredictions(self.splits.variables, test.rows, test.episodes, self.labels[2], decoded),
        )

    def score(self, probe: Probe, features: Features) -> tuple[Scores, Labels]:
        """The scores, and the decoded labels of every test frame."""
        cuts = np.cumsum([len(part) for part in self.parts])[:-1]
        train, val, test = (
            ProbeData(piece, labels, part.episodes)
            for piece, labels, part in zip(np.split(features, cuts), self.labels, self.parts, strict=True)
        )
        decoded = probe.fit(train, val).predict(test.features)
        scored = scored_rows(test, self.protocol, TEST_BATCH, self.seed, "test")
        scores = score_labels(test.labels[scored], decoded[scored], self.splits.variables, self.categories)
        return scores, decoded

    @property
    def kinds(self) -> dict[str, TargetKind]:
        """The kind of each variable."""
        return {name: _kind(name, self.categories) for name in self.splits.variables}

    def _labels(self, part: Part) -> Labels:
        found = read_labels(self.store, part.rows, self.annotation_set, self.protocol, self.splits.variables)
        return np.stack([found[name] for name in self.splits.variables], axis=1)


def _kind(variable: str, categories: Mapping[str, Any]) -> TargetKind:
    """By category: scores, clocks and lives are numbers, directions and doors are classes, all others are places."""
    if variable in categories.get(DISPLAY, ()):
        return "number"
    return "class" if variable in categories.get(MISC, ()) else "place"
