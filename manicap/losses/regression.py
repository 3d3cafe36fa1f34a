"""One view's heads predict the other's, which are held fixed: the losses of SimSiam and BYOL."""

import torch
from torch import Tensor
from torch.nn import functional as F

from manicap.losses.pairs import in_float32, require_same_heads


def negative_cosine(prediction_BND: Tensor, target_BND: Tensor) -> Tensor:
    """Negative cosine similarity (arXiv 2011.10566, Eq 1), averaged over all pairs of heads (arXiv 2405.13848, Alg 3).

        D = -mean over b, i, j of p_bi . t_bj / (|p_bi| |t_bj|)
          = -mean over b of (mean_i p_bi / |p_bi|) . (mean_j t_bj / |t_bj|)

    The targets receive no gradient. SimSiam is the mean of D for both directions. Deviations: none.
    """
    require_same_heads("negative_cosine", prediction_BND, target_BND)
    with torch.autocast(prediction_BND.device.type, enabled=False):
        prediction_BD, target_BD = (
            F.normalize(in_float32(z), dim=2).mean(1) for z in (prediction_BND, target_BND.detach())
        )
        return -(prediction_BD * target_BD).sum(1).mean()


def normalized_regression(prediction_BND: Tensor, target_BND: Tensor) -> Tensor:
    """Squared distance of the normalised vectors (arXiv 2006.07733, Eq 2), averaged over all pairs of heads.

        L = mean over b, i, j of | p_bi / |p_bi| - t_bj / |t_bj| |^2 = 2 + 2 D

    The targets receive no gradient. BYOL is the sum of L for both directions. Deviations: none.
    """
    require_same_heads("normalized_regression", prediction_BND, target_BND)
    return 2 + 2 * negative_cosine(prediction_BND, target_BND)
