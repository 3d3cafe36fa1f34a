"""Every method on images, from views to loss, equals Algorithm 3 as printed, in value and in every gradient.

The backbone is the method's own, called a view at a time (`tests/nn/test_resnet.py` checks it); heads, predictors and
losses are written out. Views differ and weights are moved from their start, so exchanged views give another number.
"""

import pytest
import torch
from torch import Tensor

from manicap.algorithms.base import Batch, Method
from tests.algorithms.small import IMAGES
from tests.algorithms.small_images import build_small, make_views
from tests.literal import (
    barlow_twins_of_pair,
    byol_of_pair,
    cosine_of_pair,
    literal_two_view,
    mmcr,
    norm,
    nt_xent_of_pair,
    tico_of_pair,
    ua,
    vicreg_of_pair,
)
from tests.literal_networks import assert_same_loss_and_gradients, head_outputs, scramble

SIZE = 6


def build(name: str, num_views: int = 2) -> Method:
    """With the weights of the terms that the method has by default; the targets of BYOL and TiCo stand apart."""
    epsilon = {"epsilon": 0.005, "num_heads": 3} if name.endswith("-c+") else {}
    method = scramble(build_small(name, num_views=num_views, **epsilon).double())
    if "covariance_NDD" in dict(method.named_buffers()):
        method.covariance_NDD.copy_(
            torch.randn(method.covariance_NDD.shape, generator=torch.Generator().manual_seed(3))
        )
    return method


def batch_for(method: Method) -> Batch:
    return Batch(make_views(method, size=SIZE).frames_BTCHW.double())


def over_pairs(custom):
    """Algorithm 3 with this loss of a pair; with one head there is no capacity term."""

    def literal(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
        o, o_other = (head_outputs(method.charts.heads, method.encoder(each).features_BF) for each in (x, x_other))
        return literal_two_view(o, o_other, custom, capacity_weight(o))

    return literal


def capacity_weight(o: Tensor) -> float:
    return 0.005 if o.shape[1] > 1 else 0.0


def barlow_twins(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
    """On outputs of one length, as the code of arXiv 2104.13712."""

    def custom(a: Tensor, b: Tensor) -> Tensor:
        a, b = (a.shape[1] ** 0.5 * each / each.norm(dim=1, keepdim=True) for each in (a, b))
        return barlow_twins_of_pair(a, b)

    return over_pairs(custom)(method, x, x_other)


def simsiam(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
    z, z_other = (head_outputs(method.charts.heads, method.encoder(each).features_BF) for each in (x, x_other))
    p, p_other = (head_outputs(method.predictors, each) for each in (z, z_other))
    loss = capacity_weight(z) * mmcr(norm(z))
    return (
        loss + literal_two_view(p, z_other, cosine_of_pair, 0) / 2 + literal_two_view(p_other, z, cosine_of_pair, 0) / 2
    )


def byol(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
    z, z_other = (head_outputs(method.charts.heads, method.encoder(each).features_BF) for each in (x, x_other))
    p, p_other = (head_outputs(method.predictors, each) for each in (z, z_other))
    t, t_other = target_outputs(method, x), target_outputs(method, x_other)
    loss = capacity_weight(z) * mmcr(norm(z))
    return loss + literal_two_view(p, t_other, byol_of_pair, 0) + literal_two_view(p_other, t, byol_of_pair, 0)


def tico(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
    z = head_outputs(method.charts.heads, method.encoder(x).features_BF)
    t_other = target_outputs(method, x_other)
    N = z.shape[1]
    loss = capacity_weight(z) * mmcr(norm(z))
    for i in range(N):
        for j in range(N):
            loss = loss + tico_of_pair(z[:, i], t_other[:, j], method.covariance_NDD[i].clone()) / N**2
    return loss


def target_outputs(method: Method, x: Tensor) -> Tensor:
    return head_outputs(method.target.heads, method.target.encoder(x).features_BF)


def mmcr_of_views(method: Method, *views: Tensor) -> Tensor:
    outputs = [head_outputs(method.head, method.encoder(x).features_BF)[:, 0] for x in views]
    return mmcr(norm(torch.stack(outputs, 1)))


def simclr_ua(method: Method, x: Tensor, x_other: Tensor) -> Tensor:
    features, features_other = (method.encoder(each).features_BF for each in (x, x_other))
    o, o_other = (head_outputs(method.charts.heads, each).mean(1) for each in (features, features_other))
    q, q_other = (method.membership.linear(each).softmax(1) for each in (features, features_other))
    return nt_xent_of_pair(o, o_other) - 0.05 * (ua(q) + ua(q_other))


LITERAL = {
    "simclr": over_pairs(nt_xent_of_pair),
    "barlow-twins": barlow_twins,
    "vicreg": over_pairs(vicreg_of_pair),
    "simsiam": simsiam,
    "byol": byol,
    "tico": tico,
    "mmcr": mmcr_of_views,
    "simclr-ua": simclr_ua,
}


@pytest.mark.parametrize("name", IMAGES)
def test_the_method_equals_algorithm_3(name: str) -> None:
    method = build(name)
    batch = batch_for(method)
    literal = LITERAL[name.removesuffix("-c+")](method, *batch.frames_BTCHW.unbind(1))
    # Nine batch normalisations over six images: rounding is divided by small deviations more than once.
    assert_same_loss_and_gradients(method.loss(batch).total, literal, method, 1e-9)


TWO_VIEW = [name for name in IMAGES if name != "mmcr"]


@pytest.mark.parametrize("name", [name for name in TWO_VIEW if not name.startswith("tico")])
def test_three_views_count_by_the_mean_of_algorithm_3_over_their_pairs(name: str) -> None:
    """The base loss by the pairs (1, 2), (1, 3), (2, 3); the capacity is that of the first view alone."""
    method = build(name, num_views=3)
    batch = batch_for(method)
    one, two, three = batch.frames_BTCHW.unbind(1)
    of_pair = LITERAL[name.removesuffix("-c+")]
    pairs = [of_pair(method, *pair) - capacity(method, pair[0]) for pair in ((one, two), (one, three), (two, three))]
    literal = sum(pairs) / 3 + capacity(method, one)
    sizes = sorted(float(pair.detach()) for pair in pairs)
    assert min(sizes[1] - sizes[0], sizes[2] - sizes[1]) > 1e-3  # so that a missing pair would be seen
    assert_same_loss_and_gradients(method.loss(batch).total, literal, method, 1e-9)


def capacity(method: Method, x: Tensor) -> Tensor:
    """The term of C+; of the other methods nothing."""
    if method.charts.regularizer is None:
        return torch.zeros((), dtype=torch.float64)
    return 0.005 * mmcr(norm(head_outputs(method.charts.heads, method.encoder(x).features_BF)))


@pytest.mark.parametrize("name", ["tico", "tico-c+"])
def test_tico_compares_each_of_three_views_with_the_target_on_later_ones(name: str) -> None:
    method = build(name, num_views=3)
    batch = batch_for(method)
    before = method.covariance_NDD.clone()
    one, two, three = batch.frames_BTCHW.unbind(1)
    o, o_two = (head_outputs(method.charts.heads, method.encoder(each).features_BF) for each in (one, two))
    t_two, t_three = target_outputs(method, two), target_outputs(method, three)
    literal = capacity(method, one)
    for early, late in ((o, t_two), (o, t_three), (o_two, t_three)):
        literal = literal + literal_two_view(early, late, lambda a, b: 1 + cosine_of_pair(a, b), 0) / 3
    # The two views that the network sees count together, in the term and in the covariance that it leaves.
    z = norm(torch.cat([o, o_two]))
    moved = [0.9 * before[n] + 0.1 * z[:, n].t() @ z[:, n] / (2 * SIZE) for n in range(z.shape[1])]
    for n, each in enumerate(moved):
        literal = literal + 8 * torch.stack([row @ each @ row for row in z[:, n]]).mean() / z.shape[1]
    assert_same_loss_and_gradients(method.loss(batch).total, literal, method, 1e-9)
    torch.testing.assert_close(method.covariance_NDD, torch.stack(moved).detach(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["tico", "tico-c+"])
def test_ticos_covariance_moves_in_training_only(name: str) -> None:
    method = build(name)
    batch = batch_for(method)
    before = method.covariance_NDD.clone()
    z = norm(head_outputs(method.charts.heads, method.encoder(batch.frames_BTCHW[:, 0]).features_BF))
    method.loss(batch)
    for n in range(z.shape[1]):
        moved = 0.9 * before[n] + 0.1 * z[:, n].t() @ z[:, n] / SIZE
        torch.testing.assert_close(method.covariance_NDD[n], moved, rtol=1e-8, atol=1e-10)
    after = method.covariance_NDD.clone()
    method.eval().loss(batch)
    assert torch.equal(method.covariance_NDD, after)


@torch.no_grad()
def test_metrics_are_of_the_first_view() -> None:
    method = build("simclr-ua")
    batch = batch_for(method)
    largest = method.membership.linear(method.encoder(batch.frames_BTCHW[:, 0]).features_BF).softmax(1).max(1)
    found = method.loss(batch).metrics["membership_max"]
    assert float(found) == pytest.approx(float(largest.values.mean()), rel=1e-8)

    method = build("mmcr")
    loss = method.loss(batch)
    # 6 centroids in 8 dimensions: at most sqrt(6 * 6).
    assert loss.metrics["capacity_bound"] == 6.0
    assert float(loss.metrics["capacity_percent"]) == pytest.approx(-100 * float(loss.total) / 6, rel=1e-12)
    error = float(loss.metrics["capacity_pretraining_percentage_error"])
    assert error == pytest.approx(100 * (6 + float(loss.total)) / 6, rel=1e-10)

    method = build("simclr-c+")
    loss = method.loss(batch)
    size = -float(mmcr(norm(head_outputs(method.charts.heads, method.encoder(batch.frames_BTCHW[:, 0]).features_BF))))
    base = float(loss.total - loss.parts["capacity"])
    expected = {"norm": size, "bound": 6.0, "percent": 100 * size / 6, "weight": 0.005, "ratio": 0.005 * size / base}
    for key, value in expected.items():
        assert float(loss.metrics[f"capacity_{key}"]) == pytest.approx(value, rel=1e-8), key


def test_every_method_is_compared() -> None:
    assert set(LITERAL) == {name.removesuffix("-c+") for name in IMAGES}
