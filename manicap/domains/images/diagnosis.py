"""Diagnostics of a finished run on images."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.algorithms.base import ProbeInput
from manicap.core.ranges import Range
from manicap.core.seeding import numpy_generator, stream_seed
from manicap.diagnostics.groups import mean_measures, measure_groups
from manicap.diagnostics.runs import BATCH, RunDiagnosis, measure_run_heads, window_pairs
from manicap.diagnostics.spectrum import lidar
from manicap.diagnostics.summary import measure_features, measure_pairs
from manicap.domains.images.config import ImageConfig
from manicap.domains.images.data import open_split
from manicap.domains.images.features import ImageEncoder
from manicap.images.views import evaluation_view, normalise
from manicap.train.finished import FinishedRun


@dataclass(frozen=True)
class ImageDiagnosisConfig:
    """What to measure a run on."""

    probe_input: ProbeInput = "backbone"
    """backbone: the pooled features; output: what the method's paper probes. For most methods they are the same."""
    images: Annotated[int, Range(2, 10**6)] = 2_000
    """Maximum number of unaugmented test images, for rank, spread and the like."""
    groups: Annotated[int, Range(4, 10**6)] = 256
    """Maximum number of test images seen in several views: groups for LiDAR, and pairs."""
    views: Annotated[int, Range(2, 64)] = 8
    """Number of views of each."""
    points: Annotated[int, Range(2, 10**6)] = 100
    """Maximum number of test images per class, for the manifold capacity."""

    def __str__(self) -> str:
        return f"{self.images:,} test images"

    def problems(self) -> list[str]:
        return [f"views must be even, got {self.views}"] if self.views % 2 else []


def diagnose_images(
    run: FinishedRun, run_config: ImageConfig, config: ImageDiagnosisConfig, data_dir: Path, quiet: bool
) -> RunDiagnosis:
    """Measure the last weights of a finished run on test images."""
    test = open_split(run_config, "test", data_dir, quiet)
    assert test.labels is not None
    frozen = run.encoder(config.probe_input, "last")
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
    heads = measure_run_heads(run, normalise(plain, test.mean, test.std))
    measures |= heads.measures
    classes = measure_groups([features_of(rows) for rows in by_class], rng)
    capacities = {} if classes is None else {"classes": classes}
    measures |= mean_measures(capacities)
    return RunDiagnosis(
        domain=run_config.domain,
        subject=run_config.subject,
        method=run_config.method,
        seed=run_config.seed,
        encoder=frozen.fingerprint,
        width=int(features.shape[1]),
        config=config,
        measures=measures,
        capacities=capacities,
        heads=heads,
    )
