"""Algorithms 1 and 2 of arXiv 2405.13848 as printed, loops and all: the slow form the package is checked against."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Layer = Callable[[Tensor], Tensor]


def ua(q: Tensor) -> Tensor:
    """Squared distance of the membership from uniform; Algorithm 1 weighs it with -0.05 for each of two frames."""
    return ((q - 1 / q.shape[1]) ** 2).sum(1).mean()


def mmcr(normalised: Tensor) -> Tensor:
    """Negative nuclear norm of the centroids of `[B, N, D]`."""
    return -torch.linalg.svdvals(normalised.mean(1)).sum()


def norm(o: Tensor) -> Tensor:
    return o / o.norm(dim=2, keepdim=True)


def literal_dim_uac(
    o_t: Tensor,
    y_t: Tensor,
    y_next: Tensor,
    q_t: Tensor,
    q_next: Tensor,
    c1: Layer,
    c2: Layer,
    tau: float = 0.1,
    epsilon: float = 0.0005,
) -> Tensor:
    """Algorithm 1 (DIM-UAC+). Heads `[B, N, D]`, feature maps `[B, H, W, C]`, memberships `[B, N]`."""
    B, H, W, _ = y_t.shape
    loss = -tau / 2 * (ua(q_t) + ua(q_next))
    loss = loss + epsilon * mmcr(norm(o_t))
    loss_g, loss_l = torch.zeros((), dtype=y_t.dtype), torch.zeros((), dtype=y_t.dtype)
    for h in range(H):
        for w in range(W):
            logits_g = torch.matmul(c1(o_t.mean(1)), y_next[:, h, w, :].t())
            loss_g = loss_g + cross_entropy(logits_g, torch.arange(B))
            logits_l = torch.matmul(c2(y_t[:, h, w, :]), y_next[:, h, w, :].t())
            loss_l = loss_l + cross_entropy(logits_l, torch.arange(B))
    return loss + loss_g / (H * W) + loss_l / (H * W)


def literal_dim_c(o_t: Tensor, y_t: Tensor, y_next: Tensor, c1: Layer, c2: Layer, epsilon: float = 0.0005) -> Tensor:
    """Algorithm 2 (DIM-C+)."""
    B, H, W, _ = y_t.shape
    N = o_t.shape[1]
    loss = epsilon * mmcr(norm(o_t))
    loss_g, loss_l = torch.zeros((), dtype=y_t.dtype), torch.zeros((), dtype=y_t.dtype)
    for h in range(H):
        for w in range(W):
            for n in range(N):
                logits_g = torch.matmul(c1(o_t[:, n, :]), y_next[:, h, w, :].t())
                loss_g = loss_g + cross_entropy(logits_g, torch.arange(B)) / N
            logits_l = torch.matmul(c2(y_t[:, h, w, :]), y_next[:, h, w, :].t())
            loss_l = loss_l + cross_entropy(logits_l, torch.arange(B))
    return loss + loss_g / (H * W) + loss_l / (H * W)
