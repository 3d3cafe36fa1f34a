"""Classify images by their nearest neighbours, weighted by similarity, as in the 2021 code."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from manicap.core.config import check_config
from manicap.core.errors import UserError
from manicap.core.ranges import Count, VoteTemperature

_ROWS = 512


@dataclass(frozen=True)
class NeighborsConfig:
    k: Count = 200
    temperature: VoteTemperature = 0.5


class Neighbors(NamedTuple):
    """Votes of the nearest training images for each image."""

    votes_BK: Tensor
    """Sum of the weights of each class."""
    nearest_BN: Tensor
    """The nearest training images, the nearest first."""


def require_neighbors(k: int, num_images: int, num_nearest: int = 0) -> None:
    if not max(1, num_nearest) <= k <= num_images:
        raise UserError(
            f"{k} nearest neighbours require as many training images, got {num_images}; use more images or a smaller k"
        )


def vote(
    features_BF: Tensor,
    train_NF: Tensor,
    labels_N: Tensor,
    num_classes: int,
    config: NeighborsConfig = NeighborsConfig(),  # noqa: B008 - frozen
    num_nearest: int = 0,
) -> Neighbors:
    """Weighted votes of the k training images with the largest cosine similarity (arXiv 1805.01978, section 3.4).

        votes_c = sum over neighbours i of class c of exp( cos(x, x_i) / temperature )

    `num_nearest` of the neighbours are also returned, to be shown.
    """
    check_config(config)
    k = config.k
    require_neighbors(k, len(train_NF), num_nearest)
    bank_NF = F.normalize(train_NF, dim=1)
    votes, nearest = [], []
    for queries_BF in features_BF.split(_ROWS):
        similarity_Bk, index_Bk = (F.normalize(queries_BF, dim=1) @ bank_NF.T).topk(k, dim=1)
        weight_Bk = (similarity_Bk / config.temperature).exp()
        votes_BK = torch.zeros(len(queries_BF), num_classes, dtype=weight_Bk.dtype, device=weight_Bk.device)
        votes.append(votes_BK.scatter_add_(1, labels_N[index_Bk], weight_Bk))
        nearest.append(index_Bk[:, :num_nearest])
    return Neighbors(torch.cat(votes), torch.cat(nearest))
