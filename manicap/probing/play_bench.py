"""Probe the state variables of play: a bench to measure on, and one call.

bench = PlayBench(store)        # a store of a game or an environment, split, with its labels
bench.evaluate(encoder, "ridge", floors={"majority": "majority", "untrained": untrained})
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manicap.core.config import check_config, checked
from manicap.core.errors import UserError
from manicap.core.memo import once
from manicap.core.ranges import Count, Seed, Width
from manicap.core.seeding import numpy_generator
from manicap.domains.evaluation import TargetKind
from manicap.play.categories import in_order
from manicap.play.protocol import find_protocol
from manicap.play.splits import Part, probe_splits, read_labels
from manicap.play.store import PlayStore
from manicap.play.views import View, usual_view
from manicap.probing.features import CHECKED_FRAMES, Features, FrameEncoder, extract_all, project_features
from manicap.probing.layers import LABELS, TEST_FRAMES, Frames, Layers, read_layers
from manicap.probing.majority import MajorityClass
from manicap.probing.metrics import Labels, Scores, score_labels
from manicap.probing.outcome import KeptOutcomes, Outcome
from manicap.probing.pixels import PIXELS, PixelMap, pixel_floors
from manicap.probing.probes import Probe, ProbeBuilder, ReadingProbe, RegressingProbe, find_probe
from manicap.probing.rescaling import Rescaling, rescale
from manicap.probing.sampling import ProbeData, scored_rows
from manicap.probing.state_result import ENCODER, StateEvaluation, StatePredictions

TEST_BATCH = 64
"""The reference protocol samples the test set in whole batches of the probe's size."""

Floor = str | FrameEncoder | StateEvaluation
"""`majority`, `pixels`, another encoder, which is probed in the same way, or an earlier result."""


@dataclass(frozen=True)
class Extraction:
    """How features are computed."""

    cache_dir: Path | None = None
    """Where they are kept for the next probe; not kept if omitted."""
    floors_dir: Path | None = None
    """Where the outcomes of floors are kept for other runs; not kept if omitted."""
    batch_size: Count = 128
    """Number of frames encoded at a time."""
    width: Width | None = None
    """Project them to this many dimensions by a seeded random orthogonal map."""
    rescaling: Rescaling = "none"
    """What to do to them before they are probed; see `rescaling`."""
    quiet: bool = False


class PlayBench:
    """What encoders are measured on: the frames of a store, split, with their labels.

    What is omitted is the store's own: of a game protocol `fixed`, annotation set `corrected` and gray frames, of an
    environment `plain`, `recorded` and frames as they were recorded.

    Raises a `UserError` if the store is too small to split or has no variable to score.
    """

    @checked
    def __init__(
        self,
        store: PlayStore,
        protocol: str | None = None,
        annotation_set: str | None = None,
        seed: Seed = 0,
        view: View | None = None,
    ) -> None:
        self.annotation_set = annotation_set = annotation_set or store.usual.annotation_set
        self.store, self.seed, self.view = store, seed, view or usual_view(store)
        self.protocol = find_protocol(protocol or store.usual.protocol)
        self.splits = probe_splits(store, self.protocol, annotation_set, seed)
        self.parts = (self.splits.train, self.splits.val, self.splits.test)
        self.rows = np.concatenate([part.rows for part in self.parts])
        self.labels = [self._labels(part) for part in self.parts]
        labelling = store.labelling(annotation_set)
        self.values = [labelling.values(part.rows, self.splits.variables) for part in self.parts]
        scored = [each for each in labelling.variables if each.name in self.splits.variables]
        self.kinds: dict[str, TargetKind] = {each.name: each.kind for each in scored}
        self.categories = {
            category: tuple(each.name for each in scored if category in each.categories)
            for category in in_order({category for each in scored for category in each.categories})
        }
        if not self.categories:
            raise UserError(
                f"none of the variables that vary in {store.path} ({', '.join(self.splits.variables)}) is in a category"
                f" of {annotation_set}; collect more steps (now {len(store)})"
            )

    def evaluate(
        self,
        encoder: FrameEncoder,
        probe: str | ProbeBuilder = "ridge",
        *,
        floors: Mapping[str, Floor] | None = None,
        fingerprints: Mapping[FrameEncoder, str] | None = None,
        extraction: Extraction = Extraction(),  # noqa: B008 - frozen
        init: str = "auto",
    ) -> StateEvaluation:
        """Scores of an encoder and its floors, with everything they depend on. The frames are read once for all."""
        check_config(extraction)
        floors = self._named_floors({"majority": "majority", PIXELS: PIXELS} if floors is None else floors, extraction)
        encoders = [encoder, *(floor for floor in floors.values() if isinstance(floor, FrameEncoder))]
        named = {each: (fingerprints or {}).get(each) for each in encoders}
        builder = find_probe(probe, len(self.store), init) if isinstance(probe, str) else probe
        kept, measured = KeptOutcomes(extraction.floors_dir), {}
        others = [each for each in named if each is not encoder]
        keys = {} if kept.directory is None else self._keys(others, builder, extraction)
        for other, key in keys.items():
            if (outcome := kept.find(key)) is not None:
                measured[other] = self._evaluation(other, outcome, named[other], builder, extraction, {})
        wanted = {each: fingerprint for each, fingerprint in named.items() if each not in measured}
        start = time.perf_counter()
        features = extract_all(
            list(wanted.items()),
            self.store,
            self.rows,
            extraction.cache_dir,
            extraction.batch_size,
            extraction.quiet,
            self.view,
        )
        seconds = (time.perf_counter() - start) / len(wanted)
        for each, found in zip(wanted, features, strict=True):
            outcome, spent = self._measure(each, found, named[each], seconds, builder, extraction)
            measured[each] = self._evaluation(each, outcome, named[each], builder, extraction, spent)
            if each in keys:
                kept.keep(keys[each], outcome)
        evaluation = measured[encoder]
        for name, floor in floors.items():
            if isinstance(floor, FrameEncoder):
                evaluation.add_floor(name, measured[floor])
            elif isinstance(floor, StateEvaluation):
                evaluation.add_floor(name, floor)
            else:
                no_features = np.zeros((len(self.rows), 1), np.float32)
                evaluation.add_floor(name, self.score(self.read(MajorityClass(), no_features)))
        return evaluation

    def _named_floors(self, floors: Mapping[str, Floor], extraction: Extraction) -> dict[str, Floor]:
        """With encoders in the place of `pixels`."""
        found: dict[str, Floor] = {}
        for name, floor in floors.items():
            if isinstance(floor, str) and floor == PIXELS:
                found |= pixel_floors(self.store, self.splits.train.rows, extraction.width, self.seed, self.view)
            else:
                found[name] = floor
        return found

    def _measure(
        self,
        encoder: FrameEncoder,
        features: Features,
        fingerprint: str | None,
        encoding_seconds: float,
        builder: ProbeBuilder,
        extraction: Extraction,
    ) -> tuple[Outcome, dict[str, float]]:
        """What the probe finds, and the seconds that it took."""
        start, feature_width = time.perf_counter(), features.shape[1]
        if extraction.width is not None and not isinstance(encoder.module, PixelMap):  # built with this width, or less
            features = project_features(features, extraction.width, self.seed)
        features = rescale(features, extraction.rescaling, len(self.splits.train))
        projected = time.perf_counter()
        probe = builder(self.protocol, self.seed, extraction.quiet)
        fingerprint = fingerprint or encoder.fingerprint()

        def read() -> Outcome:
            outcome = self.read(probe, features)._replace(feature_width=feature_width)
            if outcome.reading is not None and (layers := getattr(encoder.encoder, "layers", None)) is not None:
                outcome = outcome._replace(reading=replace(outcome.reading, layers=self._read_layers(layers)))
            return outcome

        # Annotation sets agree on most games, and the floors of a run's outputs are those of its backbone.
        key = ("outcome", fingerprint, *self._asked(encoder, builder, extraction))
        outcome = once(key, read) if fingerprint is not None else read()
        return outcome, {
            "features": encoding_seconds + projected - start,
            "probe": time.perf_counter() - projected,
        }

    def _keys(
        self, floors: Sequence[FrameEncoder], builder: ProbeBuilder, extraction: Extraction
    ) -> dict[FrameEncoder, tuple[Any, ...]]:
        """What identifies the outcome of each floor that is a module, with its content: weights, and what it returns.

        The fingerprint that a run gives says only where a network is from.
        """
        some = self.view.read(self.store, self.rows[:CHECKED_FRAMES])
        modules = [floor for floor in floors if floor.module is not None]
        returned = {floor: hashlib.sha256(floor(some).tobytes()).hexdigest() for floor in modules}
        return {
            floor: ("floor", floor.fingerprint(), returned[floor], *self._asked(floor, builder, extraction))
            for floor in modules
        }

    def _asked(self, encoder: FrameEncoder, builder: ProbeBuilder, extraction: Extraction) -> tuple[Any, ...]:
        """All that an outcome depends on but the encoder's weights."""
        probe = builder(self.protocol, self.seed, True)
        way = (type(probe).__module__, type(probe).__qualname__, str(probe.config))
        return (*way, encoder.settings, extraction.width, extraction.rescaling, self._targets)

    def _evaluation(
        self,
        encoder: FrameEncoder,
        outcome: Outcome,
        fingerprint: str | None,
        builder: ProbeBuilder,
        extraction: Extraction,
        seconds: dict[str, float],
    ) -> StateEvaluation:
        probe, test = builder(self.protocol, self.seed, True), self.splits.test
        return StateEvaluation(
            subject=self.store.subject,
            view=str(self.view),
            protocol=self.protocol.name,
            annotation_set=self.annotation_set,
            probe=probe.name,
            probe_options=asdict(probe.config) | {"rescaling": extraction.rescaling},
            width=outcome.width,
            feature_width=outcome.feature_width,
            seed=self.seed,
            steps=len(self.store),
            store=self.store.fingerprint,
            encoder=fingerprint or encoder.fingerprint(),
            threads=torch.get_num_threads(),
            counts=self.splits.counts,
            categories=self.categories,
            kinds=self.kinds,
            unseen=self.unseen,
            dropped=tuple(name for name in self.splits.entropies if name not in self.splits.variables),
            scores=self.score(outcome),
            readings={} if outcome.reading is None else {ENCODER: outcome.reading},
            seconds=seconds,
            predictions=StatePredictions(
                self.splits.variables,
                test.rows,
                test.episodes,
                self.labels[2],
                outcome.decoded,
                outcome.numbers,
                self.values[2],
            ),
        )

    def read(self, probe: Probe, features: Features) -> Outcome:
        """Fit a probe to features of all frames; what it says of the test frames."""
        variables, cuts = self.splits.variables, np.cumsum([len(part) for part in self.parts])[:-1]
        kinds = tuple(self.kinds[name] for name in variables)
        train, val, test = (
            ProbeData(piece, labels, part.episodes, kinds, values)
            for piece, labels, part, values in zip(
                np.split(features, cuts), self.labels, self.parts, self.values, strict=True
            )
        )
        probe.fit(train, val)
        if isinstance(probe, RegressingProbe):
            reading = probe.read(test, variables) if isinstance(probe, ReadingProbe) else None
            return Outcome(features.shape[1], features.shape[1], *probe.decode(test.features), reading)
        return Outcome(features.shape[1], features.shape[1], probe.predict(test.features))

    def score(self, outcome: Outcome) -> Scores:
        """How right it is, by variable and category."""
        true, variables, episodes = self.labels[2], self.splits.variables, self.splits.test.episodes
        frames = ProbeData(np.empty((len(true), 0), np.float32), true, episodes)
        scored = scored_rows(frames, self.protocol, TEST_BATCH, self.seed, "test")
        numbers = None if outcome.numbers is None else outcome.numbers[scored]
        values = None if self.values[2] is None else self.values[2][scored]
        decoded = outcome.decoded[scored]
        return score_labels(true[scored], decoded, variables, self.categories, self.kinds, numbers, values)

    @cached_property
    def _targets(self) -> str:
        """Identifies the frames of each split and what is read off them."""
        named = [(self.store.fingerprint, self.view, self.protocol.name, self.seed, self.splits.variables, self.kinds)]
        digest = hashlib.sha256(repr([*named, [len(part) for part in self.parts]]).encode())
        for array in (self.rows, *self.labels, *(each for each in self.values if each is not None)):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _read_layers(self, layers: Layers) -> dict[str, tuple[int, float]]:
        def some(index: int, count: int) -> Frames:
            part = self.parts[index]
            chosen = np.sort(numpy_generator(self.seed, "layers", part.name).permutation(len(part))[:count])
            frames = self.view.read(self.store, part.rows[chosen])
            values = self.values[index]
            own = None if values is None else values[chosen]
            return Frames(frames, self.labels[index][chosen], part.episodes[chosen], own)

        kinds = tuple(self.kinds[name] for name in self.splits.variables)
        return read_layers(layers, some(0, LABELS), some(2, TEST_FRAMES), kinds, self.seed)

    @property
    def unseen(self) -> dict[str, float]:
        """The share of test frames whose value never occurs in training, per variable."""
        pairs = zip(self.splits.variables, self.labels[0].T, self.labels[2].T, strict=True)
        return {name: float((~np.isin(test, np.unique(train))).mean()) for name, train, test in pairs}

    def _labels(self, part: Part) -> Labels:
        found = read_labels(self.store, part.rows, self.annotation_set, self.protocol, self.splits.variables)
        return np.stack([found[name] for name in self.splits.variables], axis=1)
