"""`evaluate`: probe an encoder on a game, by a named protocol, into an `Evaluation` that carries what was measured.

evaluation = evaluate(encoder, game="pong")
evaluate(encoder, game="pong", floors={"majority": "majority", "untrained": untrained_encoder})
evaluate(lambda frames: frames.mean(3).reshape(len(frames), -1), game="pong", input="float")      # NumPy
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, Self

import numpy as np
import torch

from manicap.atari.annotations import categories as categories_of
from manicap.atari.collect import collect
from manicap.atari.games import find_game
from manicap.atari.integrity import open_store
from manicap.atari.protocol import Protocol as ProbeProtocol
from manicap.atari.protocol import find_protocol
from manicap.atari.splits import Part, ProbeSplits, probe_splits, read_labels
from manicap.atari.store import Store, StoreConfig
from manicap.core.config import checked
from manicap.core.errors import UserError, unknown_choice
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Count, PlaySteps, Positive, Range, Seed, Width
from manicap.evaluate.encoders import ArrayKind, Encoder, FrozenEncoder, InputKind
from manicap.evaluate.features import Features, extract_features, project_features
from manicap.evaluate.knn import NearestNeighbors
from manicap.evaluate.logistic import LogisticProbes
from manicap.evaluate.majority import MajorityClass
from manicap.evaluate.metrics import Labels, Scores, score_labels
from manicap.evaluate.probes import LinearConfig, LinearProbes, ProbeInit
from manicap.evaluate.result import Evaluation, Predictions
from manicap.evaluate.sampling import ProbeData, scored_rows

STEPS_AN_EPOCH = 36_000
"""Steps of a store that an epoch of the linear probe passes over, at least; see `_linear_for`."""
TEST_BATCH = 64
"""The reference protocol samples the test set in whole batches of the probe's size."""


class Probe(Protocol):
    """What `evaluate` asks of a probe: `LinearProbes`, `LogisticProbes`, `NearestNeighbors` or one of your own."""

    name: str
    config: Any
    """A dataclass; its fields are recorded with the result."""

    def fit(self, train: ProbeData, val: ProbeData) -> Self: ...

    def predict(self, features: Features) -> Labels: ...


ProbeBuilder = Callable[[ProbeProtocol, int, bool], Probe]
"""From protocol, seed and quiet to a probe that is not fitted yet."""

PROBES: dict[str, ProbeBuilder] = {
    "linear": lambda protocol, seed, quiet: LinearProbes(protocol=protocol, seed=seed, quiet=quiet),
    "logistic": lambda protocol, seed, quiet: LogisticProbes(quiet=quiet),
    "knn": lambda protocol, seed, quiet: NearestNeighbors(quiet=quiet),
}

Floors = Iterable[str] | Mapping[str, "str | Encoder | Evaluation"]


@checked
def evaluate(
    encoder: Encoder,
    game: str | None = None,
    *,
    protocol: str = "fixed",
    annotation_set: str = "corrected",
    steps: PlaySteps = 50_000,
    seed: Seed = 0,
    probe: str | ProbeBuilder = "linear",
    probe_init: ProbeInit = "auto",
    width: Width | None = None,
    input: InputKind = "uint8",
    normalization: tuple[Annotated[float, Range(-1e6, 1e6)], Positive] = (0.5, 0.5),
    arrays: ArrayKind | None = None,
    floors: Floors = ("majority",),
    store: Store | Path | str | None = None,
    store_seed: Seed = 0,
    data_dir: Path | str = DATA_DIR,
    cache_dir: Path | str | None = None,
    fingerprint: str | None = None,
    batch_size: Count = 128,
    quiet: bool = False,
) -> Evaluation:
    """Probe a frozen encoder on a game.

    Args:
        encoder: From frames [B, 1, 210, 160] to features [B, F]; an `nn.Module` in eval mode, or any function.
        game: Game, under any of its usual names; pong, or the store's, if absent.
        protocol: `fixed`, or `reference` for the 2019 code's behaviour.
        annotation_set: `ari-2019`, `ari-2020` or `corrected`.
        steps: Steps of the probe store; collected into `data_dir` if it is not there.
        seed: Seed of the splits, of the probe and of the projection.
        probe: `linear` (the protocol's), `logistic` (converged), `knn`, or a function that builds a probe.
        probe_init: Weights that the linear probe starts from: `zero`, `uniform`, or the protocol's (`auto`).
        width: Project the features to this many dimensions by a seeded random orthogonal map.
        input: Frames as `uint8`, `float` (in [0, 1]) or `normalized` ((x - mean) / std of `float`).
        normalization: Mean and standard deviation for `normalized`; the default maps to [-1, 1].
        arrays: `torch` or `numpy`; by default torch for modules and their methods, NumPy for other functions.
        floors: What to compare with: names (`majority`), or a dict from a name to `"majority"`, to another encoder,
            which is probed in the same way, or to an `Evaluation`.
        store: A probe store to use instead of collecting one.
        store_seed: Seed of the games that are played for the store; the same for all seeds, so that runs are paired.
        data_dir: Where stores live.
        cache_dir: Where features are cached; nowhere if absent.
        fingerprint: Names the encoder in the cache; needed only for functions.
        batch_size: Frames encoded at a time.
        quiet: No progress.
    """
    rules = find_protocol(protocol)
    if isinstance(probe, str) and probe not in PROBES:
        raise unknown_choice("probe", probe, PROBES)
    frozen = FrozenEncoder(encoder, input, normalization, arrays)
    named_floors = _name_floors(floors)
    opened = _open(store, game, steps, store_seed, data_dir, quiet)
    bench = _Bench(opened, probe_splits(opened, rules, annotation_set, seed), rules, annotation_set, seed)
    extraction = _Extraction(None if cache_dir is None else Path(cache_dir), batch_size, width, quiet)
    builder = probe if callable(probe) else _builder(probe, opened.config.steps, probe_init)

    evaluation = bench.evaluate(frozen, fingerprint, extraction, builder)
    for name, floor in named_floors.items():
        if floor == "majority":
            no_features = np.zeros((len(bench.rows), 1), np.float32)
            evaluation.floors[name] = bench.score(MajorityClass(), no_features)[0]
        elif isinstance(floor, Evaluation):
            evaluation.add_floor(name, floor)
        else:
            other = FrozenEncoder(floor, input, normalization, arrays)
            evaluation.add_floor(name, bench.evaluate(other, None, extraction, builder))
    return evaluation


def require_probe_data(store: Store, protocol: ProbeProtocol, annotation_set: str, seed: int) -> None:
    """Raise the `UserError` that `evaluate` would: a store too small to split, or without a variable to score."""
    _Bench(store, probe_splits(store, protocol, annotation_set, seed), protocol, annotation_set, seed)


def _builder(probe: str, steps: int, init: ProbeInit) -> ProbeBuilder:
    return _linear_for(steps, init) if probe == "linear" else PROBES[probe]


def _linear_for(steps: int, init: ProbeInit) -> ProbeBuilder:
    """The protocol's probe. Where the store is smaller than the protocol's, an epoch passes over it several times.

    The schedule counts epochs: with the few batches of a small store the plateau lowers the learning rate before a
    variable has left its most frequent value. An untrained network on Pong scores 0.42 by the protocol (50,000 steps,
    one pass); on 12,000 steps 0.11 with one pass an epoch, 0.18 with two, 0.23 with three, 0.47 with four. Three are a
    compromise with time. What is linearly there, whatever the schedule, is told by the logistic probe.
    """
    config = LinearConfig(passes=max(1, STEPS_AN_EPOCH // steps), init=init)
    return lambda protocol, seed, quiet: LinearProbes(config, protocol, seed, quiet)


@dataclass(frozen=True)
class _Extraction:
    """How features are made: where they are cached, and the width they are projected to."""

    cache_dir: Path | None
    batch_size: int
    width: int | None
    quiet: bool


class _Bench:
    """A split store with its labels: extracts features of the parts' rows, fits a probe on them, and scores it."""

    def __init__(
        self, store: Store, splits: ProbeSplits, protocol: ProbeProtocol, annotation_set: str, seed: int
    ) -> None:
        self.store, self.splits, self.protocol = store, splits, protocol
        self.annotation_set, self.seed = annotation_set, seed
        self.parts = (splits.train, splits.val, splits.test)
        self.rows = np.concatenate([part.rows for part in self.parts])
        self.labels = [self._labels(part, annotation_set) for part in self.parts]
        everything = categories_of(find_game(store.config.game), annotation_set)
        present = {name: tuple(v for v in found if v in splits.variables) for name, found in everything.items()}
        self.categories = {name: found for name, found in present.items() if found}
        if not self.categories:
            raise UserError(
                f"none of the variables that vary in {store.path} ({', '.join(splits.variables)}) is in a category of"
                f" {annotation_set}; collect more steps (now {store.config.steps})"
            )

    def evaluate(
        self, encoder: FrozenEncoder, fingerprint: str | None, extraction: _Extraction, builder: ProbeBuilder
    ) -> Evaluation:
        """An encoder's scores with all that they depend on, without floors."""
        start = time.perf_counter()
        features = extract_features(
            encoder,
            self.store,
            self.rows,
            cache_dir=extraction.cache_dir,
            fingerprint=fingerprint,
            batch_size=extraction.batch_size,
            quiet=extraction.quiet,
        )
        feature_width = features.shape[1]
        if extraction.width is not None:
            features = project_features(features, extraction.width, self.seed)
        encoded = time.perf_counter()
        probe = builder(self.protocol, self.seed, extraction.quiet)
        scores, decoded = self.score(probe, features)
        return Evaluation(
            game=self.store.config.game,
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
            scores=scores,
            seconds={"features": encoded - start, "probe": time.perf_counter() - encoded},
            predictions=self._predictions(decoded),
        )

    def score(self, probe: Probe, features: Features) -> tuple[Scores, Labels]:
        """Scores, and the decoded labels of every test frame."""
        cuts = np.cumsum([len(part) for part in self.parts])[:-1]
        train, val, test = (
            ProbeData(piece, labels, part.episodes)
            for piece, labels, part in zip(np.split(features, cuts), self.labels, self.parts, strict=True)
        )
        decoded = probe.fit(train, val).predict(test.features)
        scored = scored_rows(test, self.protocol, TEST_BATCH, self.seed, "test")
        scores = score_labels(test.labels[scored], decoded[scored], self.splits.variables, self.categories)
        return scores, decoded

    def _predictions(self, decoded: Labels) -> Predictions:
        test = self.splits.test
        return Predictions(self.splits.variables, test.rows, test.episodes, self.labels[2], decoded)

    def _labels(self, part: Part, annotation_set: str) -> Labels:
        found = read_labels(self.store, part.rows, annotation_set, self.protocol, self.splits.variables)
        return np.stack([found[name] for name in self.splits.variables], axis=1)


def _open(
    store: Store | Path | str | None, game: str | None, steps: int, seed: int, data_dir: Path | str, quiet: bool
) -> Store:
    if store is None:
        return collect(StoreConfig(game or "pong", steps, seed, "probe"), data_dir, quiet=quiet)
    opened = store if isinstance(store, Store) else open_store(Path(store))
    if game is not None and find_game(game).name != opened.config.game:
        raise UserError(f"{opened.path} is a store of {opened.config.game}, not of {find_game(game).name}")
    return opened


def _name_floors(floors: Floors) -> dict[str, Any]:
    if isinstance(floors, str):
        floors = (floors,)
    named: dict[str, Any] = dict(floors) if isinstance(floors, Mapping) else {name: name for name in floors}
    for floor in named.values():
        if isinstance(floor, str) and floor != "majority":
            raise UserError(
                f"unknown floor {floor!r}; by name there is only 'majority'; give an encoder as"
                " floors={'untrained': encoder}"
            )
    return named
