"""Estimated costs of a run on images: images per epoch, seconds of probing."""

from pathlib import Path
from time import perf_counter

import torch
from torch.nn import functional as F

from manicap.domains.images.config import ImageConfig
from manicap.domains.images.evaluation_config import ImageEvaluationConfig

NUM_IMAGES = {"cifar10": (50_000, 50_000, 10_000), "stl10": (105_000, 5_000, 8_000)}
"""Images to learn from, to train a probe on, and to test on."""
SIDES = {"cifar10": 32, "stl10": 96}
OTHER_SIDE = 96
NUM_CLASSES = 10
MEASURED_STEPS = 4
CURVE_SECONDS, CURVE_PASSES = 7.0, 250
"""Label curves: fits to few images, which take as long for any dataset, and passes over twice the training images."""


def count_images(config: ImageConfig) -> tuple[int, int, int]:
    """Number of images to learn from, to train a probe on, and to test on."""
    known = NUM_IMAGES.get(config.dataset)
    if known is not None:
        return known
    counts = [len(list((Path(config.dataset) / split).glob("*/*"))) for split in ("train", "test")]
    return counts[0], counts[0], counts[1]


def images_per_epoch(config: ImageConfig) -> int:
    count = count_images(config)[0]
    return min(count, config.num_images or count)


def encoded_images(config: ImageConfig, evaluation: ImageEvaluationConfig) -> int:
    """Number of images to encode: training images once, or in every epoch of the probe; test images once."""
    _, train, test = count_images(config)
    train = min(train, config.num_images or train)
    is_again = evaluation.probe == "linear" and evaluation.is_augmented
    return train * (evaluation.probe_epochs if is_again else 1) + test


def probe_seconds(config: ImageConfig, evaluation: ImageEvaluationConfig, width: int) -> float:
    """Seconds of training the linear layer and of its label curves, from a few measured steps.

    Neighbours take next to no time.
    """
    if evaluation.probe != "linear":
        return 0.0
    _, train, _ = count_images(config)
    train = min(train, config.num_images or train)
    per_image = _layer_seconds(evaluation.probe_batch_size, width) / evaluation.probe_batch_size
    fitted = per_image * evaluation.probe_epochs * train
    return fitted if evaluation.is_augmented else fitted + CURVE_SECONDS + CURVE_PASSES * 2 * train * per_image


def _layer_seconds(batch_size: int, width: int) -> float:
    """Seconds of one step of the layer, the fastest of a few."""
    features = torch.randn(batch_size, width)
    layer = torch.nn.Linear(width, NUM_CLASSES)
    labels = torch.zeros(len(features), dtype=torch.long)
    found = []
    for _ in range(MEASURED_STEPS):
        start = perf_counter()
        F.cross_entropy(layer(features), labels).backward()
        found.append(perf_counter() - start)
    return min(found)
