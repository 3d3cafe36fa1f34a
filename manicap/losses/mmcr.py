"""Maximum manifold capacity as the whole objective: MMCR."""

import torch
from torch import Tensor

from manicap.losses.capacity import centroids
from manicap.losses.gather import gather_rows, world_size
from manicap.losses.nuclear_norm import NuclearNormMethod, nuclear_norm
from manicap.losses.pairs import in_float32


def mmcr(views_BTD: Tensor, method: NuclearNormMethod = "auto") -> Tensor:
    """Negative nuclear norm of the centroids over two or more views (arXiv 2303.03307, with lambda = 0).

        L   = -||C||_*
        C_b = mean over views t of z_bt / |z_bt|

    C has one row per sample of all processes, and L lies in [-sqrt(B min(B, D)), 0]. It equals
    `CapacityRegularizer(1.0)` over views instead of heads.

    Deviations: the term lambda mean_b ||Z_b||_*, which compresses each image's own views, is omitted.
    """
    if views_BTD.ndim != 3 or views_BTD.numel() == 0 or views_BTD.shape[1] < 2:
        raise ValueError(f"mmcr needs views_BTD of shape [B, T, D] with T of at least 2, got {list(views_BTD.shape)}")
    if len(views_BTD) * world_size() < 2:
        raise ValueError(f"mmcr needs at least 2 samples, got {len(views_BTD)}")
    with torch.autocast(views_BTD.device.type, enabled=False):
        return -nuclear_norm(gather_rows(centroids(in_float32(views_BTD))), method)
