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
    """Seconds of training the linear layer, from a few measured steps; neighbours take next to no time."""
    if evaluation.probe != "linear":
        return 0.0
    _, train, _ = count_images(config)
    train = min(train, config.num_images or train)
    features = torch.randn(evaluation.probe_batch_size, width)
    layer = torch.nn.Linear(width, NUM_CLASSES)
    labels = torch.zeros(len(features), dtype=torch.long)
    found = []
    for _ in range(MEASURED_STEPS):
        start = perf_counter()
        F.cross_entropy(layer(features), labels).backward()
        found.append(perf_counter() - start)
    return min(found) * evaluation.probe_epochs * train / evaluation.probe_batch_size
