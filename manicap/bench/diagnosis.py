"""Diagnostics of a finished Atari run, kept beside it as `diagnostics.json`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.atari.collect import collect
from manicap.atari.protocol import FIXED
from manicap.atari.splits import Part, ProbeSplits, Rows, probe_splits, read_labels
from manicap.atari.store import Store, StoreConfig
from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import PlaySteps, Range
from manicap.core.results import write_result
from manicap.core.seeding import numpy_generator
from manicap.evaluate.diagnostics.alarm import collapse_alarms
from manicap.evaluate.diagnostics.heads import head_cka, head_cosine
from manicap.evaluate.diagnostics.manifold_capacity import manifold_capacity
from manicap.evaluate.diagnostics.membership import chart_usage
from manicap.evaluate.diagnostics.spectrum import lidar
from manicap.evaluate.diagnostics.summary import measure_features, measure_heads, measure_membership, measure_pairs
from manicap.evaluate.diagnostics.training import heads_of
from manicap.evaluate.encoders import FrozenEncoder
from manicap.evaluate.features import Features, extract_features
from manicap.methods.base import Method, ProbeInput
from manicap.nn.heads import Membership
from manicap.train.config import PretrainConfig, read_config
from manicap.train.device import set_threads
from manicap.train.encoder_files import empty_method, load_encoder, load_trained_method, read_description
from manicap.train.logs import METRICS, read_log
from manicap.train.run_config import RunConfig

BATCH = 64
"""Candidates of the InfoNCE bound."""


@dataclass(frozen=True)
class DiagnosisConfig:
    """What to measure a run on."""

    probe_steps: PlaySteps = 12_000
    """Steps of play; the frames come from its test lives."""
    probe_input: ProbeInput = "backbone"
    """backbone: the convolution features, of one width for all methods; output: what the method's paper probes."""
    windows: Annotated[int, Range(2 * BATCH, 10**6)] = 256
    """Short windows of consecutive frames: groups for LiDAR, and pairs (t, t+1)."""
    window_frames: Annotated[int, Range(2, 10_000)] = 8
    """Frames a window."""
    points: Annotated[int, Range(2, 10**6)] = 50
    """Frames of each value of a variable, at most, for the manifold capacity."""
    values: Annotated[int, Range(2, 256)] = 20
    """Values of each variable, at most: the commonest."""


def diagnose_run(
    run_dir: Path,
    config: DiagnosisConfig = DiagnosisConfig(),  # noqa: B008 - frozen
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Measure a finished run, write `diagnostics.json` beside it, and return what it holds."""
    set_threads(threads)
    pretrain_config = read_config(run_dir / "config.toml")
    store = collect(StoreConfig(pretrain_config.game, config.probe_steps, 0, "probe"), data_dir, quiet=quiet)
    splits = probe_splits(store, FIXED, pretrain_config.annotation_set, pretrain_config.seed)
    encoder = load_encoder(run_dir, config.probe_input)
    frozen = FrozenEncoder(encoder, arrays="torch")

    def features_of(rows: Rows) -> Features:
        return extract_features(frozen, store, rows, quiet=quiet)

    rows = window_rows(store, splits.test, config.windows, config.window_frames)
    groups = features_of(rows.ravel()).reshape(*rows.shape, -1)
    measures = measure_features(groups[:, ::2].reshape(-1, groups.shape[2]))
    measures["lidar"] = lidar(groups)
    measures |= measure_pairs(*window_pairs(groups), BATCH)
    measures |= own_bounds(run_dir, pretrain_config)
    first_frames = torch.from_numpy(np.array(store.frames[rows[:, 0]]))[:, None]
    heads, notes = measure_run_heads(run_dir, pretrain_config, first_frames)
    measures |= heads.pop("measures", {})
    capacity = capacity_by_variable(features_of(splits.test.rows), store, splits, pretrain_config, config)
    if capacity:
        for name in ("capacity", "radius", "dimension"):
            measures[f"manifold_{name}"] = float(np.mean([entry[name] for entry in capacity.values()]))
    about = {
        "game": pretrain_config.game,
        "method": pretrain_config.method,
        "seed": pretrain_config.seed,
        "encoder": encoder.fingerprint,
        "width": int(groups.shape[2]),
        "diagnosis_config": to_dict(config),
    }
    return write_diagnosis(run_dir, about, measures, capacity, heads, notes)


def write_diagnosis(
    run_dir: Path,
    about: dict[str, Any],
    measures: dict[str, float],
    capacity: dict[str, dict[str, float]],
    heads: dict[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    """`diagnostics.json`: what was measured on what, and the alarms it gives."""
    result = {
        **about,
        "measures": {name: json_number(value) for name, value in measures.items()},
        "manifold_capacity": capacity,
        **heads,
        "notes": notes,
        "alarms": collapse_alarms(measures),
    }
    write_result(run_dir / "diagnostics.json", result)
    return result


def window_rows(store: Store, part: Part, count: int, length: int) -> Rows:
    """Rows [count, length] of windows of consecutive frames, each within one life, starts drawn evenly."""
    ends = store.episodes["start"][part.episodes] + store.episodes["length"][part.episodes]
    starts = part.rows[part.rows + length <= ends]
    if len(starts) < count:
        raise UserError(
            f"{count} windows of {length} frames need as many places to start in the test lives of {store.path},"
            f" which has {len(starts)}; take fewer --windows or more --probe-steps"
        )
    chosen = numpy_generator(0, "diagnosis", "windows").choice(starts, count, replace=False)
    return chosen[:, None] + np.arange(length)


def window_pairs(groups: NDArray[Any], batch_size: int = BATCH) -> tuple[NDArray[Any], NDArray[Any]]:
    """Frames (t, t+1) of all windows, ordered so that the pairs of a batch come from different windows."""
    usable = groups[: len(groups) // batch_size * batch_size, : groups.shape[1] // 2 * 2]
    first, second = (usable[:, offset::2].swapaxes(0, 1).reshape(-1, groups.shape[2]) for offset in (0, 1))
    return first, second


def own_bounds(run_dir: Path, config: PretrainConfig) -> dict[str, float]:
    """log K - L by the run's own critic, from its last validation, where its loss is an InfoNCE."""
    val = read_log(run_dir, METRICS, "val")
    if not val or config.method.startswith("jsd"):
        return {}
    ceiling = math.log(config.batch_size)
    found = {f"own_bound_{name}": ceiling - val[-1][name] for name in ("global", "local") if name in val[-1]}
    return {**found, "own_ceiling": ceiling} if found else {}


def measure_run_heads(run_dir: Path, config: RunConfig, inputs_BCHW: torch.Tensor) -> tuple[dict[str, Any], list[str]]:
    """Similarity of heads and use of charts, where the run has kept them; else a note that says why not."""
    method, notes = _method_with_heads(run_dir, config)
    if method is None:
        return {}, notes
    heads_module, membership = heads_of(method), getattr(method, "membership", None)
    assert heads_module is not None
    with torch.inference_mode():
        features_BF = torch.cat([method.encoder(chunk).features_BF for chunk in inputs_BCHW.split(BATCH)])
        heads_BND = heads_module(features_BF).double().numpy()
        found: dict[str, Any] = {"measures": measure_heads(heads_BND)}
        if isinstance(membership, Membership):
            q_BN = membership(features_BF).double().numpy()
            found["measures"] |= measure_membership(q_BN)
            found["chart_usage"] = chart_usage(q_BN).tolist()
    found["head_cka"] = [[json_number(x) for x in row] for row in head_cka(heads_BND)]
    found["head_cosine"] = head_cosine(heads_BND).tolist()
    return found, notes


def _method_with_heads(run_dir: Path, config: RunConfig) -> tuple[Method | None, list[str]]:
    encoder = load_encoder(run_dir)
    if "heads" in encoder.method.inference_parts:
        return encoder.method, []
    if heads_of(empty_method(run_dir)) is None:
        return None, [f"{config.method} has no set of heads to compare"]
    trained = load_trained_method(run_dir)
    if trained is None:
        return None, ["the heads are no part of the encoder, and training.safetensors, which held them, was removed"]
    steps = read_description(run_dir)["steps"]
    return trained, [f"the heads are no part of the encoder: they are measured as they were after step {steps}"]


def capacity_by_variable(
    features: Features, store: Store, splits: ProbeSplits, pretrain: PretrainConfig, config: DiagnosisConfig
) -> dict[str, dict[str, float]]:
    """Manifold capacity, radius and dimension of the frames that share a variable's value, for each variable."""
    labels = read_labels(store, splits.test.rows, pretrain.annotation_set, FIXED, splits.variables)
    found = {}
    for name in splits.variables:
        rng = numpy_generator(0, "diagnosis", "capacity", name)
        values, counts = np.unique(labels[name], return_counts=True)
        common = values[np.argsort(-counts, kind="stable")][: config.values]
        groups = [np.flatnonzero(labels[name] == value) for value in common if (labels[name] == value).sum() >= 2]
        if len(groups) < 2:
            continue
        chosen = [rng.choice(group, min(len(group), config.points), replace=False) for group in groups]
        table = manifold_capacity([features[np.sort(rows)] for rows in chosen], rng)
        found[name] = {
            "capacity": table.capacity,
            "radius": table.radius,
            "dimension": table.dimension,
            "manifolds": len(groups),
        }
    return found


def json_number(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
