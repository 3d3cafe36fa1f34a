"""Cheap diagnostics of one batch, for `--diagnose-every` during training."""

import math

import torch

from manicap.algorithms.base import Batch, LossOutput, Method
from manicap.diagnostics.alarm import collapse_alarms
from manicap.diagnostics.summary import measure_features, measure_heads, measure_membership, measure_pairs
from manicap.losses.gather import world_size
from manicap.losses.regularizer import Regularizer
from manicap.nn.heads import Heads, Membership


def measure_batch(method: Method, batch: Batch) -> dict[str, float | str]:
    """Measures of a batch's backbone features, of its first two frames or views, of heads, membership and regularizer.

    Undefined numbers are omitted. `alarm` holds one sentence for each sign of collapse, if there is any. The rank of a
    batch cannot exceed its size, so compare it only at the same batch size. The information bound uses half of the
    batch as candidates.
    """
    frames_BTCHW = batch.frames_BTCHW[:, :2]
    B, T = frames_BTCHW.shape[:2]
    features_TBF = method.encoder(frames_BTCHW.transpose(0, 1).flatten(0, 1)).features_BF.float().unflatten(0, (T, B))
    now_BF = features_TBF[0]
    features = features_TBF.cpu().numpy()
    measures = measure_features(features[0])
    if T == 2 and B >= 4:
        measures |= measure_pairs(features[0], features[1], B // 2)
    heads, membership = heads_of(method), getattr(method, "membership", None)
    if heads is not None:
        measures |= measure_heads(heads(now_BF).float().cpu().numpy())
    if isinstance(membership, Membership):
        measures |= measure_membership(membership(now_BF).float().cpu().numpy())
    measures |= regularizer_shares(method, batch)
    found: dict[str, float | str] = {name: value for name, value in measures.items() if math.isfinite(value)}
    if alarms := collapse_alarms(measures):
        found["alarm"] = "; ".join(alarms)
    return found


def heads_of(method: Method) -> Heads | None:
    """The heads on a method's backbone features, its own or those of its `Charts`; None if it has no such set."""
    heads = getattr(getattr(method, "charts", method), "heads", None)
    return heads if isinstance(heads, Heads) else None


def regularizer_shares(method: Method, batch: Batch) -> dict[str, float]:
    """The size of the regularizer's term relative to the rest of the loss, and that of its gradient.

        loss_share     = |term| / |base|
        gradient_share = |d term / d encoder| / |d base / d encoder|        norms over all weights of the encoder

    It takes a forward and two backward passes. It is omitted without a regularizer, and with several processes, because
    only one of them measures.
    """
    regularizer = regularizer_of(method)
    if regularizer is None or world_size() > 1:
        return {}
    with torch.enable_grad():
        parts = method.loss(batch).parts
        term = parts[regularizer.term]
        base = LossOutput({name: part for name, part in parts.items() if name != regularizer.term}).total
        weights = [weight for weight in method.encoder.parameters() if weight.requires_grad]
        norms = []
        for loss in (term, base):
            gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
            found = [torch.linalg.vector_norm(gradient) for gradient in gradients if gradient is not None]
            norms.append(float(torch.linalg.vector_norm(torch.stack(found))))
    sizes = [abs(float(loss.detach())) for loss in (term, base)]
    shares = {"regularizer_loss_share": sizes, "regularizer_gradient_share": norms}
    return {name: of_term / of_base if of_base else math.nan for name, (of_term, of_base) in shares.items()}


def regularizer_of(method: Method) -> Regularizer | None:
    """The regularizer of a method's outputs, its own or that of its `Charts`; None if it has none."""
    found = getattr(getattr(method, "charts", method), "regularizer", None)
    return found if isinstance(found, Regularizer) else None
