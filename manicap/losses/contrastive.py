"""NT-Xent, the contrastive loss of SimCLR, for one head or over all pairs of heads."""

import torch
from torch import Tensor
from torch.nn import functional as F

from manicap.losses.gather import gather_rows, row_offset, world_size
from manicap.losses.pairs import in_float32, require_two_views

MIN_TEMPERATURE = 0.025
"""exp(-2 / 0.025) = 2e-35 is still a normal float32 number, so no sum of exponentials can vanish."""


def nt_xent(z_BND: Tensor, z_other_BND: Tensor, temperature: float = 0.5) -> Tensor:
    """NT-Xent (arXiv 2002.05709, Eq 1), averaged over all pairs of heads (arXiv 2405.13848, Algorithm 3).

        L      = mean over i, j of L_ij,        L_ij = mean over the 2B anchors of pair (i, j)
        anchor a = z_bi:   -log( exp(s(a, z'_bj)) / (sum_k exp(s(a, z'_kj)) + sum_{k != b} exp(s(a, z_ki))) )
        anchor a = z'_bj:  the same with the views exchanged
        s(a, c) = a . c / (|a| |c| temperature)

    `z_BND` are the heads' outputs on one view, `z_other_BND` on the other; the candidates come from the whole batch of
    all processes. With one head it is plain NT-Xent.

    A pair's sums over the other view are blocks of one N B x N B matrix, and those over its own view do not depend on
    the partner head. That takes N^2 B^2 + 2 N B^2 exponentials, compared with 4 N^2 B^2 in the loop over pairs.

    Deviations: none. Similarities lie in [-1, 1], so exponents are shifted by the constant 1 / temperature instead of
    each row's maximum; this requires a temperature of at least 0.025.
    """
    require_two_views("nt_xent", z_BND, z_other_BND)
    if not temperature >= MIN_TEMPERATURE:
        raise ValueError(f"nt_xent needs a temperature of at least {MIN_TEMPERATURE}, got {temperature}")
    with torch.autocast(z_BND.device.type, enabled=False):
        z_NBD, z_other_NBD = (F.normalize(in_float32(z), dim=2).transpose(0, 1) for z in (z_BND, z_other_BND))
        all_NKD, all_other_NKD = (_gather_samples(z) for z in (z_NBD, z_other_NBD))
        to_other_NBNK = _exponentials(z_NBD, all_other_NKD, temperature)
        if world_size() == 1:  # the same similarities, seen from the other side
            from_other_NNB = to_other_NBNK.sum(1)
        else:
            from_other_NNB = _exponentials(z_other_NBD, all_NKD, temperature).sum(3).permute(2, 0, 1)
        own_NB, own_other_NB = (
            _own_view_sums(z, candidates, temperature)
            for z, candidates in ((z_NBD, all_NKD), (z_other_NBD, all_other_NKD))
        )
        log_sums = (to_other_NBNK.sum(3) + own_NB[:, :, None]).log().mean()
        log_sums = log_sums + (from_other_NNB + own_other_NB).log().mean()
        # The mean over pairs of the similarity of positives is the product of the mean heads.
        positives = (z_NBD.mean(0) * z_other_NBD.mean(0)).sum(1).mean()
        return log_sums / 2 + (1 - positives) / temperature


def _exponentials(z_NBD: Tensor, candidates_NKD: Tensor, temperature: float) -> Tensor:
    """exp((similarity - 1) / temperature) of every head's anchors with every head's candidates, `[N, B, N, K]`."""
    N, B, _ = z_NBD.shape
    shift = z_NBD.new_full((1, 1), -1 / temperature)
    # Scale and shift inside the product, exponentiate in place: most of the time goes into this matrix.
    logits = torch.addmm(shift, z_NBD.flatten(0, 1), candidates_NKD.flatten(0, 1).mT, alpha=1 / temperature)
    return logits.exp_().view(N, B, N, -1)


def _own_view_sums(z_NBD: Tensor, candidates_NKD: Tensor, temperature: float) -> Tensor:
    """Sum of the same over the other samples of the anchor's own view and head, `[N, B]`."""
    B, K = z_NBD.shape[1], candidates_NKD.shape[1]
    shift_BK = z_NBD.new_full((B, K), -1 / temperature)
    shift_BK.diagonal(row_offset(B)).fill_(-torch.inf)  # an anchor is not its own candidate
    logits = torch.baddbmm(shift_BK, z_NBD, candidates_NKD.mT, alpha=1 / temperature)
    return logits.exp_().sum(2)


def _gather_samples(z_NBD: Tensor) -> Tensor:
    return gather_rows(z_NBD.transpose(0, 1)).transpose(0, 1)
