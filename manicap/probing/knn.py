"""k nearest neighbours by cosine similarity, all variables at once: a probe that does not train."""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.core.config import check_config
from manicap.core.errors import UserError
from manicap.core.progress import Tracker
from manicap.core.ranges import Range
from manicap.probing.metrics import Labels, num_classes
from manicap.probing.sampling import ProbeData

_ROWS = 512


@dataclass(frozen=True)
class NeighborsConfig:
    k: Annotated[int, Range(1, 20)] = 5


class NearestNeighbors:
    """The most frequent label among the k nearest training frames; ties go to the nearest frame's."""

    name = "knn"

    def __init__(self, config: NeighborsConfig | None = None, quiet: bool = True) -> None:
        self.config, self.quiet = config or NeighborsConfig(), quiet
        check_config(self.config)

    def fit(self, train: ProbeData, val: ProbeData | None = None) -> Self:
        """Keep the training frames, centred and scaled to length 1. `val` is not used."""
        if len(train) < self.config.k:
            raise UserError(f"{self.config.k} nearest neighbours require as many training frames, got {len(train)}")
        # Features after a ReLU all point into one orthant; relative to their mean, angles tell them apart.
        self.mean_ = train.features.mean(0, dtype=np.float64).astype(np.float32)
        self.directions_ = self._directions(train.features)
        self.labels_ = torch.from_numpy(train.labels)
        return self

    def predict(self, features: NDArray[np.float32]) -> Labels:
        """Decoded labels [n, V]."""
        k = self.config.k
        labels = self.labels_.numpy()
        decoded, K = np.empty((len(features), labels.shape[1]), labels.dtype), num_classes(labels)
        # Votes are whole numbers; as a tie-breaker, the nearest frame outweighs all farther ones together.
        weights_k = 1 + 0.5 ** torch.arange(1, k + 1, dtype=torch.float32)
        with Tracker("nearest neighbours", len(features), "frames", self.quiet) as tracker:
            for start in range(0, len(features), _ROWS):
                queries = self._directions(features[start : start + _ROWS])
                nearest_Bk = (queries @ self.directions_.T).topk(k, dim=1).indices
                classes_BkV = self.labels_[nearest_Bk].long()
                votes = torch.zeros(len(queries), K, decoded.shape[1])
                votes.scatter_add_(1, classes_BkV, weights_k[None, :, None].expand_as(classes_BkV))
                decoded[start : start + _ROWS] = votes.argmax(1).numpy()
                tracker.advance(len(queries))
        return decoded

    def _directions(self, features: NDArray[np.float32]) -> Tensor:
        return torch.nn.functional.normalize(torch.from_numpy(features - self.mean_), dim=1)
