"""The unbalanced atlas: chart membership pushed away from uniform."""

from torch import Tensor


def unbalance(membership_BN: Tensor) -> Tensor:
    """Negative squared distance of the membership from uniform (arXiv 2405.13848, Eq 3).

        L_N(q) = -mean_b sum_i (q_bi - 1/N)^2

    It lies between -(1 - 1/N), every frame in one chart, and 0, uniform. Algorithm 1 adds 0.05 of it for each of the
    two frames (its `ua` is the positive sum, its weight -0.05). Deviations: none.
    """
    if membership_BN.ndim != 2 or membership_BN.numel() == 0:
        raise ValueError(f"unbalance needs membership_BN of shape [B, N], got {list(membership_BN.shape)}")
    return -(membership_BN - 1 / membership_BN.shape[1]).square().sum(1).mean()
