"""Label curves of images: how well the class is read from few labelled images and from all.

The probe of the scores trains for a fixed number of epochs, which suits one number of labels and not another. Here a
multinomial logistic regression is fitted to convergence instead, with a regularization chosen among the labels given.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from manicap.probing.class_result import CLASS, Labels
from manicap.probing.reading import Reading
from manicap.probing.ridge_probes import RidgeProbes
from manicap.probing.sampling import ProbeData
from manicap.probing.subsets import SMALLEST

Features = NDArray[np.float32]


def read_classes(
    features: Mapping[str, tuple[Features, Features]], train_labels: Labels, test_labels: Labels, seed: int, quiet: bool
) -> dict[str, Reading]:
    """Label curves from the training and test features [n, F] of each encoder, all from the same labelled images.

    Empty if there are fewer training images than the smallest number of labels.
    """
    if len(train_labels) < SMALLEST:
        return {}
    found = {}
    for name, (train, test) in features.items():
        probe = RidgeProbes(seed, quiet).fit(_probe_data(train, train_labels))
        found[name] = probe.read(_probe_data(test, test_labels), (CLASS,))
    return found


def _probe_data(features: Features, labels: Labels) -> ProbeData:
    """Every image by itself: none resembles the one before it, as frames of an episode do."""
    return ProbeData(features, labels[:, None], np.arange(len(labels)), ("class",))
