"""What the two-view losses share: head outputs `[B, N, D]`, one stack per view."""

import torch
from torch import Tensor

from manicap.losses.gather import world_size


def require_heads(loss: str, z_BND: Tensor) -> None:
    if z_BND.ndim != 3 or z_BND.numel() == 0:
        raise ValueError(f"{loss} needs heads of shape [B, N, D], got {list(z_BND.shape)}")


def require_same_heads(loss: str, z_BND: Tensor, z_other_BND: Tensor) -> None:
    if z_BND.ndim != 3 or z_BND.shape != z_other_BND.shape or z_BND.numel() == 0:
        raise ValueError(
            f"{loss} needs the heads of both views, [B, N, D] each, got {list(z_BND.shape)} and "
            f"{list(z_other_BND.shape)}"
        )


def require_two_views(loss: str, z_BND: Tensor, z_other_BND: Tensor) -> None:
    """The same, and at least two samples in the batch of all processes."""
    require_same_heads(loss, z_BND, z_other_BND)
    if len(z_BND) * world_size() < 2:
        raise ValueError(f"{loss} needs at least 2 samples, got {len(z_BND)}")


def in_float32(x: Tensor) -> Tensor:
    """Half precision becomes float32; float32 and float64 are unchanged."""
    return x.float() if x.element_size() < 4 else x


def product_squares(a: Tensor, b: Tensor) -> Tensor:
    """||A^T B||_F^2, summed over leading axes, of matrices `[..., rows, columns]`.

    It equals the sum of (A A^T) * (B B^T), which is cheaper if there are fewer rows than columns.
    """
    if a.shape[-2] >= a.shape[-1]:
        return (a.mT @ b).square().sum()
    gram_a = a @ a.mT
    gram_b = gram_a if b is a else b @ b.mT
    return torch.sum(gram_a * gram_b)
