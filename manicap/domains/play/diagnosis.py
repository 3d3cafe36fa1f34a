"""Diagnostics of a finished run on play."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch

from manicap.algorithms.base import ProbeInput
from manicap.algorithms.predictors import PairSettings
from manicap.core.errors import UserError
from manicap.core.ranges import PlaySteps, Range
from manicap.core.seeding import numpy_generator
from manicap.diagnostics.groups import GroupCapacity, mean_measures, measure_groups
from manicap.diagnostics.runs import BATCH, RunDiagnosis, measure_run_heads, window_pairs
from manicap.diagnostics.spectrum import lidar
from manicap.diagnostics.summary import measure_features, measure_pairs
from manicap.domains.run_config import RunConfig
from manicap.play.protocol import Protocol
from manicap.play.splits import Part, ProbeSplits, probe_splits, read_labels
from manicap.play.store import PlayStore, Rows
from manicap.play.views import View
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import Features, extract_features
from manicap.train.finished import FinishedRun
from manicap.train.logs import METRICS, read_log


@dataclass(frozen=True)
class PlayDiagnosisConfig:
    """What to measure a run on."""

    probe_steps: PlaySteps = 12_000
    """Steps of play; the frames come from the test lives."""
    probe_input: ProbeInput = "backbone"
    """backbone: the convolution features, equally wide for all methods; output: what the method's paper probes."""
    windows: Annotated[int, Range(2 * BATCH, 10**6)] = 256
    """Number of short windows of consecutive frames: groups for LiDAR, and pairs (t, t+1)."""
    window_frames: Annotated[int, Range(2, 10_000)] = 8
    """Frames per window."""
    points: Annotated[int, Range(2, 10**6)] = 100
    """Maximum number of frames per value of a variable, for the manifold capacity."""
    values: Annotated[int, Range(2, 256)] = 20
    """Maximum number of values per variable: the most frequent ones."""

    def __str__(self) -> str:
        return f"{self.probe_steps:,} steps of play"


def diagnose_play(
    run: FinishedRun,
    run_config: Any,
    config: PlayDiagnosisConfig,
    store: PlayStore,
    view: View,
    protocol: Protocol,
    quiet: bool,
) -> RunDiagnosis:
    """Measure a finished run on the test lives of a probe store, of which its encoder has this view."""
    splits = probe_splits(store, protocol, run_config.annotation_set, run_config.seed)
    encoder = run.encoder(config.probe_input)
    frozen = FrameEncoder(encoder, arrays="torch")

    def features_of(rows: Rows) -> Features:
        return extract_features(frozen, store, rows, view, quiet=quiet)

    rows = window_rows(store, splits.test, config.windows, config.window_frames)
    groups = features_of(rows.ravel()).reshape(*rows.shape, -1)
    measures = measure_features(groups[:, ::2].reshape(-1, groups.shape[2]))
    measures["lidar"] = lidar(groups)
    measures |= measure_pairs(*window_pairs(groups), BATCH)
    measures |= own_bounds(run.run_dir, run_config)
    first_frames = torch.from_numpy(view.read(store, rows[:, 0]))
    heads = measure_run_heads(run, first_frames)
    measures |= heads.measures
    test_features, annotation_set = features_of(splits.test.rows), run_config.annotation_set
    capacities = capacity_by_variable(test_features, store, splits, annotation_set, protocol, config)
    measures |= mean_measures(capacities)
    return RunDiagnosis(
        domain=run_config.domain,
        subject=run_config.subject,
        method=run_config.method,
        seed=run_config.seed,
        encoder=encoder.fingerprint,
        width=int(groups.shape[2]),
        config=config,
        measures=measures,
        capacities=capacities,
        heads=heads,
    )


def window_rows(store: PlayStore, part: Part, count: int, length: int) -> Rows:
    """Rows [count, length] of windows of consecutive frames, each within one life, with uniformly drawn starts."""
    ends = store.episodes["start"][part.episodes] + store.episodes["length"][part.episodes]
    starts = part.rows[part.rows + length <= ends]
    if len(starts) < count:
        raise UserError(
            f"{count} windows of {length} frames need as many starting points in the test lives of {store.path},"
            f" which has {len(starts)}; use fewer --windows or more --probe-steps"
        )
    chosen = numpy_generator(0, "diagnosis", "windows").choice(starts, count, replace=False)
    return chosen[:, None] + np.arange(length)


def own_bounds(run_dir: Path, config: RunConfig) -> dict[str, float]:
    """log K - L of the run's own critic, from its last validation, if its loss is an InfoNCE with K candidates."""
    val = read_log(run_dir, METRICS, "val")
    if not val or config.method.startswith("jsd"):
        return {}
    settings, size = config.settings, config.batch_size
    ceiling = settings.infonce_ceiling(size) if isinstance(settings, PairSettings) else math.log(size)
    found = {f"own_bound_{name}": ceiling - val[-1][name] for name in ("global", "local") if name in val[-1]}
    return {**found, "own_ceiling": ceiling} if found else {}


def capacity_by_variable(
    features: Features,
    store: PlayStore,
    splits: ProbeSplits,
    annotation_set: str,
    protocol: Protocol,
    config: PlayDiagnosisConfig,
) -> dict[str, GroupCapacity]:
    """Capacity and geometry of the frames that share a variable's value, for each variable."""
    labels = read_labels(store, splits.test.rows, annotation_set, protocol, splits.variables)
    found = {}
    for name in splits.variables:
        rng = numpy_generator(0, "diagnosis", "capacity", name)
        values, counts = np.unique(labels[name], return_counts=True)
        common = values[np.argsort(-counts, kind="stable")][: config.values]
        groups = [np.flatnonzero(labels[name] == value) for value in common if (labels[name] == value).sum() >= 2]
        if len(groups) < 2:
            continue
        chosen = [rng.choice(group, min(len(group), config.points), replace=False) for group in groups]
        if (measured := measure_groups([features[np.sort(rows)] for rows in chosen], rng)) is not None:
            found[name] = measured
    return found
