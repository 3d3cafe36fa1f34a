"""`evaluate_images`: probe a method on a dataset with a named protocol, giving a `ClassEvaluation`.

clean       statistics frozen; features computed once and standardised; the probe's last epoch
tsai2021    as in the code of arXiv 2104.13712: new views in every probe epoch, running statistics that follow them

The linear probe on features computed once comes with label curves (see `label_curves`).
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manicap.algorithms.base import Method, ProbeInput
from manicap.core.errors import UserError
from manicap.core.progress import Tracker
from manicap.core.seeding import numpy_generator
from manicap.domains.images.config import ImageConfig
from manicap.domains.images.data import open_split
from manicap.domains.images.evaluation_config import ImageEvaluationConfig, ProbeName
from manicap.domains.images.features import AugmentedFeatures, ImageEncoder
from manicap.domains.images.label_curves import Features, read_classes
from manicap.images.dataset import ImageDataset
from manicap.images.recipes import Recipe
from manicap.probing.class_result import ClassEvaluation, ClassPredictions, ClassScores, Labels, score_classes
from manicap.probing.classes import CachedFeatures, FeatureSource, LinearProbe, LinearProbeConfig
from manicap.probing.curve_result import ENCODER
from manicap.probing.encoders import FrameEncoder
from manicap.probing.reading import Reading
from manicap.probing.votes import NeighborsConfig, require_neighbors, vote

SHOWN_IMAGES, SHOWN_NEIGHBORS = 24, 8
ENCODED_TOGETHER = 250


@dataclass(frozen=True)
class ImageProtocol:
    name: str
    augmented: bool
    """The probe trains on new views in every epoch, not on features computed once."""
    moving_statistics: bool
    """The running statistics of the encoder follow those views."""


PROTOCOLS = {
    "clean": ImageProtocol("clean", augmented=False, moving_statistics=False),
    "tsai2021": ImageProtocol("tsai2021", augmented=True, moving_statistics=True),
}


@dataclass(frozen=True)
class ImageBench:
    """The images of an evaluation, and how to measure."""

    train: ImageDataset
    test: ImageDataset
    recipe: Recipe
    protocol: ImageProtocol
    probe: ProbeName = "linear"
    probe_input: ProbeInput = "output"
    linear: LinearProbeConfig = field(default_factory=LinearProbeConfig)
    neighbors: NeighborsConfig = field(default_factory=NeighborsConfig)
    seed: int = 0
    quiet: bool = True
    name: str = ""
    """Name of the dataset; its reader's name if empty."""
    cache_dir: Path | None = None
    """Where features are kept for the next probe; not kept if omitted."""

    @property
    def has_curves(self) -> bool:
        """Whether label curves are measured: of a linear probe that sees the same features in every epoch."""
        return self.probe == "linear" and not self.protocol.augmented

    @property
    def options(self) -> dict[str, Any]:
        """What a result depends on besides the images."""
        config = asdict(self.linear if self.probe == "linear" else self.neighbors)
        if self.probe == "linear":
            config["features"] = "augmented" if self.protocol.augmented else "cached"
            config["statistics"] = "moving" if self.protocol.moving_statistics else "frozen"
        return config

    def encode(self, method: Method, fingerprint: str | None = None) -> "EncodedImages":
        """The features that every probe of the method starts from; kept on disk if it has a fingerprint."""
        start = time.perf_counter()
        mean, std = self.train.mean, self.train.std
        moving = self.protocol.moving_statistics and self.probe == "linear"
        encoder = ImageEncoder(method, self.recipe, mean, std, self.probe_input, moving)

        def features(dataset: ImageDataset) -> Tensor:
            if self.cache_dir is None or fingerprint is None:
                return encoder.encode(dataset, self.quiet)
            return encoder.encode_once(dataset, self.cache_dir, fingerprint, self.quiet)

        return EncodedImages(encoder, features(self.train), features(self.test), time.perf_counter() - start)


@dataclass(frozen=True)
class EncodedImages:
    """Features of the plain images, and the encoder that produced them."""

    encoder: ImageEncoder | None
    """None for an encoder of which only the features are known."""
    train_NF: Tensor
    test_NF: Tensor
    seconds: float

    @property
    def arrays(self) -> tuple[Features, Features]:
        """Training and test features."""
        return self.train_NF.cpu().numpy(), self.test_NF.cpu().numpy()


@dataclass(frozen=True)
class Measured:
    scores_NK: Tensor
    nearest: Labels
    width: int
    seconds: dict[str, float]


def evaluate_images(
    bench: ImageBench, method: Method, fingerprint: str, floors: Mapping[str, Method] | None = None
) -> ClassEvaluation:
    """Scores of a method, of the methods in `floors`, probed in the same way, and of the most frequent class.

    `fingerprint` identifies the method with its weights, and with it its floors.
    """
    encoded = {name: bench.encode(other, f"{name} of {fingerprint}") for name, other in (floors or {}).items()}
    return _evaluate(bench, bench.encode(method, fingerprint), fingerprint, encoded)


def evaluate_any(
    bench: ImageBench, encoder: FrameEncoder, floors: Mapping[str, FrameEncoder] | None = None
) -> ClassEvaluation:
    """Scores of any function from images [B, C, H, W] to features, and of others probed in the same way."""
    if bench.protocol.augmented:
        raise UserError("new views in every epoch of the probe require a method's own encoder; use protocol clean")
    encoded = {name: _encode_any(bench, other) for name, other in (floors or {}).items()}
    return _evaluate(bench, _encode_any(bench, encoder), encoder.fingerprint(), encoded)


def _evaluate(
    bench: ImageBench, encoded: EncodedImages, fingerprint: str | None, floors: Mapping[str, EncodedImages]
) -> ClassEvaluation:
    labels, names = _labels(bench.test), bench.test.class_names
    shown = numpy_generator(0, "shown images").permutation(len(labels))[:SHOWN_IMAGES]
    measured = measure(bench, encoded, shown)
    decoded = measured.scores_NK.argmax(1).cpu().numpy()
    evaluation = ClassEvaluation(
        subject=bench.name or bench.test.name,
        protocol=bench.protocol.name,
        probe=bench.probe,
        probe_options=bench.options,
        width=measured.width,
        seed=bench.seed,
        store=f"{bench.train.fingerprint}-{bench.test.fingerprint}",
        encoder=fingerprint,
        threads=torch.get_num_threads(),
        counts={"train": len(bench.train), "test": len(bench.test)},
        scores=_scores(measured, labels, names),
        seconds=measured.seconds,
        floors={"majority": majority(_labels(bench.train), labels, names)},
        predictions=ClassPredictions(labels, decoded, shown, measured.nearest, _labels(bench.train)[measured.nearest]),
    )
    for name, other in floors.items():
        evaluation.floors[name] = _scores(measure(bench, other, shown), labels, names)
    if bench.has_curves:
        start = time.perf_counter()
        evaluation.readings = _read(bench, {ENCODER: encoded, **floors})
        evaluation.seconds["curves"] = time.perf_counter() - start
    return evaluation


def _read(bench: ImageBench, encoded: Mapping[str, EncodedImages]) -> dict[str, Reading]:
    """Label curves of the encoder and of each floor."""
    features = {name: each.arrays for name, each in encoded.items()}
    return read_classes(features, _labels(bench.train), _labels(bench.test), bench.seed, bench.quiet)


def _encode_any(bench: ImageBench, encoder: FrameEncoder) -> EncodedImages:
    start = time.perf_counter()

    def features(dataset: ImageDataset) -> Tensor:
        blocks = []
        with Tracker(f"encoding {dataset.name}", len(dataset), "images", bench.quiet) as tracker:
            for first in range(0, len(dataset), ENCODED_TOGETHER):
                blocks.append(encoder(dataset.images[first : first + ENCODED_TOGETHER]))
                tracker.advance(len(blocks[-1]))
        return torch.from_numpy(np.concatenate(blocks))

    return EncodedImages(None, features(bench.train), features(bench.test), time.perf_counter() - start)


def require_labels(bench: ImageBench) -> None:
    """Raise the `UserError` that `evaluate_images` would: images without labels, or fewer than neighbours asked for."""
    labels, _ = _labels(bench.train), _labels(bench.test)
    if bench.probe == "knn":
        require_neighbors(bench.neighbors.k, len(labels))


def accuracy(bench: ImageBench, encoded: EncodedImages) -> float:
    """Share of correct first choices."""
    measured = measure(bench, encoded, np.zeros(0, np.int64))
    return _scores(measured, _labels(bench.test), bench.test.class_names).accuracy


def measure(bench: ImageBench, encoded: EncodedImages, shown: Labels) -> Measured:
    """Scores of all test images, and the training images nearest to those in `shown`."""
    start = time.perf_counter()
    train_NF, test_NF = encoded.train_NF, encoded.test_NF
    labels = _labels(bench.train)
    targets_N = torch.from_numpy(labels).to(train_NF.device)
    K = bench.train.num_classes
    few = replace(bench.neighbors, k=min(SHOWN_NEIGHBORS, len(labels)))
    nearest = vote(test_NF[torch.from_numpy(shown)], train_NF, targets_N, K, few, few.k).nearest_BN
    if bench.probe == "knn":
        scores = vote(test_NF, train_NF, targets_N, K, bench.neighbors).votes_BK
    else:
        scores = _linear_scores(bench, encoded.encoder, train_NF, test_NF, labels)
    seconds = {"features": encoded.seconds, "probe": time.perf_counter() - start}
    return Measured(scores, nearest.cpu().numpy(), train_NF.shape[1], seconds)


def _linear_scores(
    bench: ImageBench, encoder: ImageEncoder | None, train_NF: Tensor, test_NF: Tensor, labels: Labels
) -> Tensor:
    probe = LinearProbe(bench.linear, bench.seed, bench.quiet)
    source: FeatureSource
    if bench.protocol.augmented:
        assert encoder is not None
        source = AugmentedFeatures(encoder, bench.train, bench.seed)
        probe.fit(source, labels, bench.train.num_classes)
        return probe.scores(encoder.encode(bench.test, bench.quiet))  # again: the statistics may have changed
    # Standardising is a linear map, which the probe could learn itself. It keeps the scale of an encoder's features
    # from deciding how far Adam gets in its epochs.
    mean_F, std_F = train_NF.mean(0), train_NF.std(0).clamp_min(1e-6)
    probe.fit(CachedFeatures((train_NF - mean_F) / std_F), labels, bench.train.num_classes)
    return probe.scores((test_NF - mean_F) / std_F)


def majority(train_labels: Labels, labels: Labels, class_names: tuple[str, ...]) -> ClassScores:
    """Classes ordered by their frequency in training, the same for every image."""
    counts = np.bincount(train_labels, minlength=len(class_names))
    return score_classes(np.tile(counts.astype(np.float64), (len(labels), 1)), labels, class_names)


def _scores(measured: Measured, labels: Labels, names: tuple[str, ...]) -> ClassScores:
    return score_classes(measured.scores_NK.cpu().numpy(), labels, names)


def _labels(dataset: ImageDataset) -> Labels:
    if dataset.labels is None:
        raise UserError(f"the {dataset.split} images of {dataset.name} have no labels, which a probe requires")
    return dataset.labels


def open_bench(run_config: ImageConfig, config: ImageEvaluationConfig, data_dir: Path, quiet: bool) -> ImageBench:
    protocol = PROTOCOLS[config.protocol]
    if config.probe_features != "auto":
        augmented = config.probe_features == "augmented"
        protocol = replace(protocol, augmented=augmented, moving_statistics=protocol.moving_statistics and augmented)
    return ImageBench(
        train=open_split(run_config, "train", data_dir, quiet),
        test=open_split(run_config, "test", data_dir, quiet),
        recipe=run_config.view_recipe,
        protocol=protocol,
        probe=config.probe,
        probe_input=config.probe_input,
        linear=LinearProbeConfig(config.probe_batch_size, config.probe_epochs),
        neighbors=NeighborsConfig(config.neighbors, config.neighbor_temperature),
        seed=run_config.seed,
        quiet=quiet,
        name=run_config.subject,
    )
