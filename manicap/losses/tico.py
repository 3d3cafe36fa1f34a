"""The covariance term of TiCo; its invariance term is `regression.negative_cosine`."""

import torch
from torch import Tensor
from torch.nn import functional as F

from manicap.losses.gather import gather_rows
from manicap.losses.pairs import in_float32, require_heads


def covariance_contrast(z_BND: Tensor, covariance_NDD: Tensor, decay: float = 0.9) -> tuple[Tensor, Tensor]:
    """Covariance contrast of TiCo (arXiv 2206.10698), mean over heads; and the updated covariance, without gradient.

        C'_i = decay C_i + (1 - decay) mean_b z_bi z_bi^T       z normalised
        c    = mean over i, b of z_bi^T C'_i z_bi

    The mean is over the samples of all processes. Directions that the embeddings take often are penalised.
    Start from C = 0. Over pairs of heads (arXiv 2405.13848, Algorithm 3) the term of pair (i, j) is that of head i.

    The mean of z^T C z is the sum of C * (mean of z z^T): no product per sample is needed. Deviations: none.
    """
    require_heads("covariance_contrast", z_BND)
    _, N, D = z_BND.shape
    if covariance_NDD.shape != (N, D, D):
        raise ValueError(
            f"covariance_contrast needs covariance_NDD of shape {[N, D, D]}, got {list(covariance_NDD.shape)}"
        )
    with torch.autocast(z_BND.device.type, enabled=False):
        z_NBD = gather_rows(F.normalize(in_float32(z_BND), dim=2)).transpose(0, 1)
        now_NDD = z_NBD.mT @ z_NBD / z_NBD.shape[1]
        moved_NDD = torch.lerp(now_NDD, covariance_NDD.to(now_NDD.dtype), decay)
        return (moved_NDD * now_NDD).sum() / N, moved_NDD.detach()
