"""Algorithms 1 to 3 of arXiv 2405.13848 as printed, loops and all: the slow form the package is checked against."""

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


def literal_two_view(
    o: Tensor, o_other: Tensor, custom: Callable[[Tensor, Tensor], Tensor], epsilon: float = 0.005
) -> Tensor:
    """Algorithm 3, with the norm of Algorithms 1 and 2 that it does not write. Heads `[B, N, D]` of the two views."""
    N = o.shape[1]
    loss = epsilon * mmcr(norm(o))
    for i in range(N):
        for j in range(N):
            loss = loss + custom(o[:, i, :], o_other[:, j, :]) / N**2
    return loss


def nt_xent_of_pair(a: Tensor, b: Tensor, temperature: float = 0.5) -> Tensor:
    """Eq 1 of arXiv 2002.05709: all 2B x 2B similarities, an anchor's own masked, cross-entropy with its other view."""
    B = len(a)
    z = torch.cat([a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)])
    logits = (z @ z.t() / temperature).masked_fill(torch.eye(2 * B, dtype=torch.bool), -torch.inf)
    return cross_entropy(logits, torch.cat([torch.arange(B, 2 * B), torch.arange(B)]))


def barlow_twins_of_pair(a: Tensor, b: Tensor, weight: float = 0.005, correction: int = 1, eps: float = 1e-5) -> Tensor:
    """Eqs 1-2 of arXiv 2103.03230: the D x D cross-correlation and its distance from the identity."""

    def standard(x: Tensor) -> Tensor:
        return (x - x.mean(0)) / (x.var(0, correction=correction) + eps).sqrt()

    c = standard(a).t() @ standard(b) / len(a)
    diagonal = torch.diagonal(c)
    return ((1 - diagonal) ** 2).sum() + weight * ((c**2).sum() - (diagonal**2).sum())


def vicreg_of_pair(a: Tensor, b: Tensor) -> Tensor:
    """VICReg as its code weighs it: 25 s + 25 (v + v') / 2 + (c + c')."""

    def v(x: Tensor) -> Tensor:
        return (1 - (x.var(0) + 1e-4).sqrt()).clamp_min(0).mean()

    def c(x: Tensor) -> Tensor:
        covariance = torch.cov(x.t())
        return (covariance**2).sum() / x.shape[1] - (torch.diagonal(covariance) ** 2).sum() / x.shape[1]

    return 25 * ((a - b) ** 2).mean() + 25 * (v(a) + v(b)) / 2 + c(a) + c(b)


def cosine_of_pair(a: Tensor, b: Tensor) -> Tensor:
    """SimSiam's D: the target b stands still."""
    return -torch.cosine_similarity(a, b.detach(), dim=1).mean()


def byol_of_pair(a: Tensor, b: Tensor) -> Tensor:
    """Squared distance of the normalised vectors; the target b stands still."""
    return ((a / a.norm(dim=1, keepdim=True) - (b / b.norm(dim=1, keepdim=True)).detach()) ** 2).sum(1).mean()


def tico_of_pair(a: Tensor, b: Tensor, covariance: Tensor, rho: float = 8.0, beta: float = 0.9) -> Tensor:
    """TiCo of one head with its covariance; the target b stands still."""
    z = a / a.norm(dim=1, keepdim=True)
    moved = beta * covariance + (1 - beta) * (z.t() @ z) / len(z)
    penalty = torch.stack([row @ moved @ row for row in z]).mean()
    return 1 + cosine_of_pair(a, b) + rho * penalty
