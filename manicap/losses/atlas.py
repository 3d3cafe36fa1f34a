"""The unbalanced atlas: chart membership pushed away from uniform; and the terms of an atlas autoencoder."""

import math

import torch
from torch import Tensor

from manicap.losses.pairs import in_float32


def unbalance(membership_BN: Tensor) -> Tensor:
    """Negative squared distance of the membership from uniform (arXiv 2405.13848, Eq 3).

        L_N(q) = -mean_b sum_i (q_bi - 1/N)^2

    It lies between -(1 - 1/N), where every frame is in one chart, and 0, where the membership is uniform. Algorithm 1
    adds 0.05 of it for each of the two frames (its `ua` is the positive sum, its weight -0.05). Deviations: none.
    """
    if membership_BN.ndim != 2 or membership_BN.numel() == 0:
        raise ValueError(f"unbalance needs membership_BN of shape [B, N], got {list(membership_BN.shape)}")
    with torch.autocast(membership_BN.device.type, enabled=False):
        return -(in_float32(membership_BN) - 1 / membership_BN.shape[1]).square().sum(1).mean()


def chart_error(points_BC: Tensor, decoded_BNC: Tensor, membership_BN: Tensor) -> Tensor:
    """Squared distance from a point to each chart's reconstruction, weighted by membership (after arXiv 1803.00156).

    L = mean_b sum_i q_bi |x_b - psi_i(phi_i(x_b))|^2

    With the charts' centres psi_i(0) in place of the decoded points, it measures the extent of the charts.
    """
    B, N, C = decoded_BNC.shape
    if points_BC.shape != (B, C) or membership_BN.shape != (B, N):
        raise ValueError(
            "chart_error needs points_BC [B, C], decoded_BNC [B, N, C] and membership_BN [B, N], "
            f"got {list(points_BC.shape)}, {list(decoded_BNC.shape)} and {list(membership_BN.shape)}"
        )
    with torch.autocast(points_BC.device.type, enabled=False):
        distance_BN = (in_float32(points_BC)[:, None] - in_float32(decoded_BNC)).square().sum(2)
        return (in_float32(membership_BN) * distance_BN).sum(1).mean()


def certainty(membership_BN: Tensor) -> Tensor:
    """Negative mean entropy of the membership, mean_b sum_i q_bi log q_bi: 0 if certain, -log N if uniform."""
    with torch.autocast(membership_BN.device.type, enabled=False):
        return torch.special.entr(in_float32(membership_BN)).sum(1).mean().neg()


def imbalance(membership_BN: Tensor) -> Tensor:
    """Divergence of the charts' mean usage from uniform, sum_i m_i log(N m_i) with m = mean_b q_b: 0 to log N."""
    with torch.autocast(membership_BN.device.type, enabled=False):
        usage_N = in_float32(membership_BN).mean(0)
        return math.log(len(usage_N)) - torch.special.entr(usage_N).sum()
