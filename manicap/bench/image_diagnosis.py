"""Diagnostics of a finished run on images, kept beside it as `diagnostics.json`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.bench.diagnosis import BATCH, measure_run_heads, window_pairs, write_diagnosis
from manicap.bench.image_evaluation import read_image_config
from manicap.core.config import to_dict
from manicap.core.paths import DATA_DIR
from manicap.core.ranges import Range
from manicap.core.seeding import numpy_generator, stream_seed
from manicap.evaluate.diagnostics.manifold_capacity import manifold_capacity
from manicap.evaluate.diagnostics.spectrum import lidar
from manicap.evaluate.diagnostics.summary import measure_features, measure_pairs
from manicap.evaluate.image_features import ImageEncoder
from manicap.images.views import evaluation_view, normalise
from manicap.methods.base import ProbeInput
from manicap.train.device import set_threads
from manicap.train.encoder_files import load_encoder
from manicap.train.image_data import open_split


@dataclass(frozen=True)
class ImageDiagnosisConfig:
    """What to measure a run on images on."""

    probe_input: ProbeInput = "backbone"
    """backbone: the pooled features; output: what the method's paper probes. The same for most methods on images."""
    images: Annotated[int, Range(2, 10**6)] = 2_000
    """Test images, at most, as they are: for rank, spread and the like."""
    groups: Annotated[int, Range(4, 10**6)] = 256
    """Test images, at most, that are seen in several views: groups for LiDAR, and pairs."""
    views: Annotated[int, Range(2, 64)] = 8
    """Views of each of them."""
    points: Annotated[int, Range(2, 10**6)] = 50
    """Test images of each class, at most, for the manifold capacity."""

    def problems(self) -> list[str]:
        return [f"views must be even, got {self.views}"] if self.views % 2 else []


def diagnose_image_run(
    run_dir: Path,
    config: ImageDiagnosisConfig = ImageDiagnosisConfig(),  # noqa: B008 - frozen
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Measure the last weights of a finished run on test images, write `diagnostics.json`, and return what it holds."""
    set_threads(threads)
    run_config = read_image_config(run_dir)
    test = open_split(run_config, "test", data_dir, quiet)
    assert test.labels is not None
    frozen = load_encoder(run_dir, config.probe_input, "last")
    encoder = ImageEncoder(frozen.method, run_config.view_recipe, test.mean, test.std, config.probe_input)

    rng = numpy_generator(0, "diagnosis", "capacity")
    members = [np.flatnonzero(test.labels == label) for label in np.unique(test.labels)]
    by_class = [np.sort(rng.choice(rows, min(len(rows), config.points), replace=False)) for rows in members]
    order = numpy_generator(0, "diagnosis", "images").permutation(len(test))
    some, seen = np.sort(order[: config.images]), np.sort(order[: config.groups])
    encoded = np.unique(np.concatenate([some, *by_class]))
    features = encoder.encode(test.take(encoded), quiet).cpu().numpy()

    def features_of(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = features[np.searchsorted(encoded, rows)]
        return found

    measures = measure_features(features_of(some))
    views = [encoder.encode_views(test.images[seen], stream_seed(0, "diagnosis", v)) for v in range(config.views)]
    groups = torch.stack(views, 1).cpu().numpy()
    measures["lidar"] = lidar(groups)
    candidates = min(BATCH, len(groups) // 2)
    measures |= measure_pairs(*window_pairs(groups, candidates), candidates)
    plain = evaluation_view(torch.from_numpy(test.images[seen]), run_config.view_recipe)
    heads, notes = measure_run_heads(run_dir, run_config, normalise(plain, test.mean, test.std))
    measures |= heads.pop("measures", {})
    table = manifold_capacity([features_of(rows) for rows in by_class], rng)
    capacity = {"capacity": table.capacity, "radius": table.radius, "dimension": table.dimension}
    measures |= {f"manifold_{name}": value for name, value in capacity.items()}
    about = {
        "dataset": run_config.subject,
        "method": run_config.method,
        "seed": run_config.seed,
        "encoder": frozen.fingerprint,
        "width": int(features.shape[1]),
        "diagnosis_config": to_dict(config),
    }
    by_groups = {"classes": {**capacity, "manifolds": len(by_class)}}
    return write_diagnosis(run_dir, about, measures, by_groups, heads, notes)
