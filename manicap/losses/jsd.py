"""The Jensen-Shannon estimator of DeepInfoMax, for the JSD ablation of ST-DIM."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from manicap.losses.gather import gather_rows, row_offset


def global_local_jsd(predictions_BNC: Tensor, targets_BPC: Tensor) -> Tensor:
    """Global-local Jensen-Shannon loss (arXiv 1808.06670, Eq 4; ablated in arXiv 1906.08226).

        s_bb' = c_bn . y_b'p
        L = mean over n, p of ( mean_b softplus(-s_bb) + mean over b' != b of softplus(s_bb') )

    Deviations: the score is a dot product after applying c1, and every other frame of the batch is a negative; the
    2019 code draws one random frame, uses a bilinear form with bias and halves the sum.
    """
    if predictions_BNC.ndim != 3 or targets_BPC.ndim != 3 or predictions_BNC.shape[::2] != targets_BPC.shape[::2]:
        raise ValueError(
            "global_local_jsd needs predictions_BNC [B, N, C] and targets_BPC [B, P, C] with the same B and C, "
            f"got {list(predictions_BNC.shape)} and {list(targets_BPC.shape)}"
        )
    return _jensen_shannon(_scores("bnc,kpc->npbk", predictions_BNC, gather_rows(targets_BPC)))


def local_local_jsd(predictions_BPC: Tensor, targets_BPC: Tensor) -> Tensor:
    """Local-local Jensen-Shannon loss: like `global_local_jsd`, with a prediction for each position.

        s_bb' = c_bp . y_b'p

    Deviations: the same.
    """
    if predictions_BPC.ndim != 3 or predictions_BPC.shape != targets_BPC.shape:
        raise ValueError(
            "local_local_jsd needs predictions_BPC and targets_BPC of one shape [B, P, C], "
            f"got {list(predictions_BPC.shape)} and {list(targets_BPC.shape)}"
        )
    return _jensen_shannon(_scores("bpc,kpc->pbk", predictions_BPC, gather_rows(targets_BPC)))


def _jensen_shannon(scores: Tensor) -> Tensor:
    """From scores `[..., B, K]`: K gathered frames, B of them this process's own."""
    B, K = scores.shape[-2:]
    if K < 2:
        raise ValueError("the Jensen-Shannon loss needs at least 2 frames to have a negative, got 1")
    positive = scores.diagonal(row_offset(B), -2, -1)
    # Subtracting the positives from all pairs is cheaper than masking the scores.
    negatives = softplus(scores).sum() - softplus(positive).sum()
    return softplus(-positive).mean() + negatives / (scores.numel() - positive.numel())


def _scores(equation: str, *vectors: Tensor) -> Tensor:
    """Dot products, never in half precision."""
    with torch.autocast(vectors[0].device.type, enabled=False):
        return torch.einsum(equation, *(x.float() if x.element_size() < 4 else x for x in vectors))
