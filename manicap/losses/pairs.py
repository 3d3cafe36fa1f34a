"""What the two-view losses share: two stacks of head outputs, `[B, N, D]`, one a view."""

from torch import Tensor

from manicap.losses.gather import world_size


def require_two_views(loss: str, z_BND: Tensor, z_other_BND: Tensor) -> None:
    """The shapes every two-view loss needs, and a second sample in the batch (of all processes)."""
    if z_BND.ndim != 3 or z_BND.shape != z_other_BND.shape or z_BND.numel() == 0:
        raise ValueError(
            f"{loss} needs the heads of both views, [B, N, D] each, got {list(z_BND.shape)} and "
            f"{list(z_other_BND.shape)}"
        )
    if len(z_BND) * world_size() < 2:
        raise ValueError(f"{loss} needs at least 2 samples, got {len(z_BND)}")


def in_float32(x: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return x.float() if x.element_size() < 4 else x
