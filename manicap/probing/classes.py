"""The linear probe of classes: one linear layer on frozen features, trained as in Table 5 of arXiv 2405.13848.

    probe = LinearProbe(config, seed).fit(CachedFeatures(features), labels, num_classes)
    probe.scores(test_features)                                 # [n, K]

The source decides where the features come from: computed once (`CachedFeatures`), or from new views of the training
images in every epoch (`AugmentedFeatures` of `manicap.domains.images.features`).
"""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from manicap.core.config import check_config
from manicap.core.progress import Tracker
from manicap.core.ranges import Count, NonNegative, Positive
from manicap.core.seeding import numpy_generator, stream_seed

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class LinearProbeConfig:
    """Table 5: batch 512, 200 epochs, Adam at 1e-3 with weight decay 1e-6."""

    batch_size: Count = 512
    epochs: Count = 200
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 1e-6


class FeatureSource(Protocol):
    width: int

    def take(self, rows: Rows, *stream: str | int) -> Tensor:
        """Features `[B, F]` of training images; what is drawn depends only on the stream's name."""
        ...


class CachedFeatures:
    """Precomputed features, the same in every epoch."""

    def __init__(self, features_NF: Tensor) -> None:
        self.features_NF, self.width = features_NF, features_NF.shape[1]

    def take(self, rows: Rows, *stream: str | int) -> Tensor:
        return self.features_NF[torch.from_numpy(rows).to(self.features_NF.device)]


class LinearProbe:
    """Softmax regression by Adam; the weights of the last epoch."""

    name = "linear"

    def __init__(self, config: LinearProbeConfig | None = None, seed: int = 0, quiet: bool = True) -> None:
        self.config, self.seed, self.quiet = config or LinearProbeConfig(), seed, quiet
        check_config(self.config)

    def fit(self, source: FeatureSource, labels: NDArray[np.int64], num_classes: int) -> Self:
        config, size = self.config, self.config.batch_size
        device = source.take(np.zeros(1, np.int64), 0, 0).device
        targets_N = torch.from_numpy(labels).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_seed(self.seed, "probe"))
            self.layer_ = nn.Linear(source.width, num_classes).to(device)
        adam = torch.optim.Adam(self.layer_.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
        with Tracker("linear probe", config.epochs, "epochs", self.quiet) as tracker:
            for epoch in range(config.epochs):
                order = numpy_generator(self.seed, "probe", epoch).permutation(len(labels))
                for index in range(0, len(order), size):
                    rows = order[index : index + size]
                    logits_BK = self.layer_(source.take(rows, epoch, index))
                    loss = F.cross_entropy(logits_BK, targets_N[torch.from_numpy(rows).to(device)])
                    adam.zero_grad()
                    loss.backward()
                    adam.step()
                tracker.advance()
        return self

    @torch.no_grad()
    def scores(self, features_BF: Tensor) -> Tensor:
        """Logits `[B, K]`."""
        logits_BK: Tensor = self.layer_(features_BF)
        return logits_BK
