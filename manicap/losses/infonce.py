"""InfoNCE with dot-product scores: global-local, local-local, plain, and several steps ahead.

All compute one quantity from anchors, a set of targets and the index of each anchor's own target: the mean
cross-entropy of picking it. `_InfoNCE` computes it without storing the logits. Under autocast, values and gradients
are float32.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from manicap.losses.gather import gather_rows, row_offset


def infonce(anchors_BC: Tensor, targets_BC: Tensor) -> Tensor:
    """InfoNCE over the batch (arXiv 1807.03748, Eq 4), scored by dot products.

        L = -mean_b log( exp(a_b . t_b) / sum_b' exp(a_b . t_b') )

    Deviations: none. For a temperature or normalisation, pass scaled vectors.
    """
    _require_same_shape("infonce", "anchors_BC", anchors_BC, "targets_BC", targets_BC, 2)
    return _cross_entropy(anchors_BC, gather_rows(targets_BC)[None], _own_index(anchors_BC))


def global_local_infonce(predictions_BNC: Tensor, targets_BPC: Tensor) -> Tensor:
    """Global-local InfoNCE (arXiv 2405.13848, Eq 7 and Algorithms 1, 2).

        L = -mean over b, n, p of log( exp(c_bn . y_bp) / sum_b' exp(c_bn . y_b'p) )

    `predictions_BNC` is c1 of each head's output at t, `targets_BPC` the local feature map at t+1. N = 1 is the plain
    ST-DIM and DIM-UA term. Deviations: the mean over positions where Eq 7 writes a sum, as the algorithms do.
    """
    if predictions_BNC.ndim != 3 or targets_BPC.ndim != 3 or _ends(predictions_BNC) != _ends(targets_BPC):
        raise ValueError(
            "global_local_infonce needs predictions_BNC [B, N, C] and targets_BPC [B, P, C] with the same B and C, "
            f"got {list(predictions_BNC.shape)} and {list(targets_BPC.shape)}"
        )
    num_heads = predictions_BNC.shape[1]
    own = _own_index(predictions_BNC).repeat_interleave(num_heads)
    return _cross_entropy(predictions_BNC.flatten(0, 1), gather_rows(targets_BPC).transpose(0, 1), own)


def local_local_infonce(predictions_BPC: Tensor, targets_BPC: Tensor) -> Tensor:
    """Local-local InfoNCE (arXiv 2405.13848, Eq 8 and Algorithms 1, 2).

        L = -mean over b, p of log( exp(c_bp . y_bp) / sum_b' exp(c_bp . y_b'p) )

    `predictions_BPC` is c2 of the local feature map at t, `targets_BPC` the map at t+1.
    Deviations: the mean over positions where Eq 8 writes a sum, as the algorithms do.
    """
    _require_same_shape("local_local_infonce", "predictions_BPC", predictions_BPC, "targets_BPC", targets_BPC, 3)
    own = _own_index(predictions_BPC)
    return _cross_entropy(predictions_BPC.transpose(0, 1), gather_rows(targets_BPC).transpose(0, 1), own)


def cpc_infonce(predictions: Mapping[int, Tensor], targets_BTC: Tensor, chunk_rows: int = 1024) -> Tensor:
    """InfoNCE of several steps ahead (arXiv 1807.03748, Eq 4, as used by arXiv 1906.08226).

        L_k = -mean over b, t of log( exp(c_k,bt . z_b,t+k) / sum over b', t' >= k of exp(c_k,bt . z_b't') )
        L   = mean over k of L_k

    `predictions[k]` is `[B, T - k, C]`: for each time t that has one, the prediction of the encoding k steps later. The
    logits, (B T)^2 per step, are computed for `chunk_rows` anchors at a time and never stored, forward or backward.
    Deviations: the mean over steps, where the 2019 code sums.
    """
    if targets_BTC.ndim != 3:
        raise ValueError(f"cpc_infonce needs targets_BTC of shape [B, T, C], got {list(targets_BTC.shape)}")
    if chunk_rows < 1:
        raise ValueError(f"cpc_infonce needs chunk_rows of at least 1, got {chunk_rows}")
    if not predictions:
        raise ValueError("cpc_infonce needs predictions for at least one step, got none")
    B, T, C = targets_BTC.shape
    for step, prediction_BTC in predictions.items():
        if not 0 < step < T or prediction_BTC.shape != (B, T - step, C):
            raise ValueError(
                f"cpc_infonce needs predictions[k] of shape [B, T - k, C] with 0 < k < T; targets_BTC is {[B, T, C]} "
                f"and predictions[{step}] is {list(prediction_BTC.shape)}"
            )
    all_targets_BTC = gather_rows(targets_BTC)
    losses = []
    for step, prediction_BTC in predictions.items():
        anchors_MC = prediction_BTC.flatten(0, 1)
        pool_KC = all_targets_BTC[:, step:].flatten(0, 1)
        losses.append(_cross_entropy(anchors_MC, pool_KC[None], _own_index(anchors_MC), chunk_rows))
    return torch.stack(losses).mean()


def _cross_entropy(anchors: Tensor, targets_GKC: Tensor, own_M: Tensor, chunk_rows: int | None = None) -> Tensor:
    """Mean over groups g and anchors m of the cross-entropy of `own_M[m]` under logits `anchor . targets_GKC[g]`.

    Anchors are `[M, C]`, shared by all groups, or `[G, M, C]`.
    """
    if anchors.numel() == 0 or targets_GKC.numel() == 0:
        raise ValueError("InfoNCE needs at least one sample, head, position and channel, got an empty tensor")
    device_type = targets_GKC.device.type
    with torch.autocast(device_type, enabled=False):
        anchors, targets_GKC = (x.float() if x.element_size() < 4 else x for x in (anchors, targets_GKC))
        loss: Tensor = _InfoNCE.apply(anchors, targets_GKC, own_M, chunk_rows or len(own_M))
        return loss


# The three products of the loss, for anchors shared by all groups and for anchors of each group. Sharing makes each
# of them one matrix multiplication over all groups: (M, C) x (C, G K).
_SHARED = ("mc,gkc->mgk", "mgk,gkc->mc", "mgk,mc->gkc")
_GROUPED = ("gmc,gkc->gmk", "gmk,gkc->gmc", "gmk,gmc->gkc")


class _InfoNCE(torch.autograd.Function):
    """The forward pass, which has the softmax at hand, computes the gradients; the backward pass scales them.

    The logits therefore exist for one chunk at a time and are never stored. At B = 64, N = 4, P = 88, C = 128 on two
    threads, forward and backward take 10 ms, compared with 15 for autograd's cross_entropy and 115 for the loops of
    Algorithm 2.
    """

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, targets_GKC: Tensor, own_M: Tensor, chunk_rows: int) -> Tensor:
        score, to_anchors, to_targets = _SHARED if anchors.ndim == 2 else _GROUPED
        axis = anchors.ndim - 2
        targets_GKC = targets_GKC.contiguous()
        loss = anchors.new_zeros(())
        anchor_gradients: list[Tensor] = []
        target_gradient: Tensor | None = None
        for chunk, own in zip(anchors.split(chunk_rows, axis), own_M.split(chunk_rows), strict=True):
            logits = torch.einsum(score, chunk, targets_GKC)
            index = own.view((-1, 1, 1) if axis == 0 else (1, -1, 1)).expand(*logits.shape[:2], 1)
            softmax = logits.softmax(-1)
            # The largest probability is at least 1/K, so its logarithm gives the log-sum-exp safely. With one
            # exponential per logit in total, this is faster than a log-softmax and its exponential.
            log_sum_exp = logits.amax(-1) - softmax.amax(-1).log()
            loss += (log_sum_exp - logits.gather(-1, index).squeeze(-1)).sum()
            if any(ctx.needs_input_grad):
                residual = softmax.scatter_add_(-1, index, softmax.new_full((), -1.0).expand(index.shape))
                anchor_gradients.append(torch.einsum(to_anchors, residual, targets_GKC))
                part = torch.einsum(to_targets, residual, chunk)
                target_gradient = part if target_gradient is None else target_gradient.add_(part)
        ctx.count = len(own_M) * len(targets_GKC)
        if target_gradient is not None:
            anchor_gradient = anchor_gradients[0] if len(anchor_gradients) == 1 else torch.cat(anchor_gradients, axis)
            ctx.save_for_backward(anchor_gradient, target_gradient)
        return loss / ctx.count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        anchor_gradient, target_gradient = ctx.saved_tensors
        scale = grads[0] / ctx.count
        return scale * anchor_gradient, scale * target_gradient, None, None


def _own_index(rows: Tensor) -> Tensor:
    """The index of each of this process's rows among the gathered rows."""
    return torch.arange(len(rows), device=rows.device) + row_offset(len(rows))


def _ends(x: Tensor) -> tuple[int, int]:
    return x.shape[0], x.shape[-1]


def _require_same_shape(loss: str, a_name: str, a: Tensor, b_name: str, b: Tensor, ndim: int) -> None:
    if a.shape != b.shape or a.ndim != ndim:
        raise ValueError(
            f"{loss} needs {a_name} and {b_name} of one shape with {ndim} axes, got {list(a.shape)} and {list(b.shape)}"
        )
