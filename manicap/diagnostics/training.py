"""Cheap diagnostics of one batch, for `--diagnose-every` during training."""

import math

from manicap.algorithms.base import Batch, Method
from manicap.diagnostics.alarm import collapse_alarms
from manicap.diagnostics.summary import measure_features, measure_heads, measure_membership, measure_pairs
from manicap.nn.heads import Heads, Membership


def measure_batch(method: Method, batch: Batch) -> dict[str, float | str]:
    """Measures of a batch's backbone features, of its first two frames or views, of heads and membership.

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
    found: dict[str, float | str] = {name: value for name, value in measures.items() if math.isfinite(value)}
    if alarms := collapse_alarms(measures):
        found["alarm"] = "; ".join(alarms)
    return found


def heads_of(method: Method) -> Heads | None:
    """The heads on a method's backbone features, its own or those of its `Charts`; None if it has no such set."""
    heads = getattr(getattr(method, "charts", method), "heads", None)
    return heads if isinstance(heads, Heads) else None
