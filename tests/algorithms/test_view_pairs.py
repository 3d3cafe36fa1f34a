"""Views in pairs: two views are what they were to the bit, of more each is computed once and every pair counts."""

from collections import Counter
from itertools import permutations

import pytest
import torch
from torch import Tensor

from manicap.algorithms.base import Batch, Method
from manicap.algorithms.image_base import view_features
from manicap.algorithms.two_view import mean_over_view_pairs
from manicap.losses.atlas import unbalance
from manicap.losses.contrastive import nt_xent
from manicap.losses.redundancy import barlow_twins
from manicap.losses.regression import negative_cosine, normalized_regression
from manicap.losses.tico import covariance_contrast
from manicap.losses.variance import covariance_penalty, invariance, variance_hinge
from tests.algorithms.small import IMAGES
from tests.algorithms.small_images import build_small, make_views

TWO_VIEW = [name for name in IMAGES if name != "mmcr"]
Parts = dict[str, Tensor]


def simclr(method: Method, z: Tensor, other: Tensor) -> Parts:
    return {"contrast": nt_xent(z, other, 0.5)}


def barlow(method: Method, z: Tensor, other: Tensor) -> Parts:
    return {"redundancy": barlow_twins(z, other, normalize=True)}


def vicreg(method: Method, z: Tensor, other: Tensor) -> Parts:
    variance = (variance_hinge(z) + variance_hinge(other)) / 2
    covariance = covariance_penalty(z) + covariance_penalty(other)
    return {"invariance": 25 * invariance(z, other), "variance": 25 * variance, "covariance": covariance}


def simsiam(method: Method, z: Tensor, other: Tensor) -> Parts:
    there, back = negative_cosine(method.predictors(z), other), negative_cosine(method.predictors(other), z)
    return {"similarity": (there + back) / 2}


def two_views(method: Method, batch: Batch) -> Parts:
    """The parts of the base loss on two views, without a loop, in the order in which they have always been computed."""
    name = type(method).__name__.removesuffix("CPlus")
    first, second = batch.frames_BTCHW.unbind(1)
    if name == "TiCo":  # whose network sees the second view for the regularizer alone
        z, target = method.charts(method.encoder(first).features_BF), method.target(second)
        contrast, _ = covariance_contrast(z, method.covariance_NDD)
        return {"invariance": 1 + negative_cosine(z, target), "covariance": 8 * contrast}
    features = view_features(method.encoder, batch.frames_BTCHW)
    z, other = map(method.charts, features)
    if name == "SimCLRUA":
        q, q_other = map(method.membership, features)
        contrast = nt_xent(z.mean(1, keepdim=True), other.mean(1, keepdim=True), 0.5)
        return {"contrast": contrast, "unbalance": 0.05 * (unbalance(q) + unbalance(q_other))}
    if name == "BYOL":
        target, target_other = method.target(first), method.target(second)
        there = normalized_regression(method.predictors(z), target_other)
        return {"regression": there + normalized_regression(method.predictors(other), target)}
    return {"SimCLR": simclr, "BarlowTwins": barlow, "VICReg": vicreg, "SimSiam": simsiam}[name](method, z, other)


@pytest.mark.parametrize("name", TWO_VIEW)
def test_the_parts_and_gradients_of_two_views_are_the_plain_ones_to_the_bit(name: str) -> None:
    ours, plain = build_small(name, epsilon=0.0), build_small(name, epsilon=0.0)
    batch = make_views(ours)
    found, expected = ours.loss(batch).parts, two_views(plain, batch)
    assert found.keys() == expected.keys()
    for part, value in expected.items():
        assert torch.equal(found[part], value), part
    torch.stack(list(found.values())).sum().backward()
    torch.stack(list(expected.values())).sum().backward()
    for (key, parameter), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        assert (parameter.grad is None) == (other.grad is None), key
        assert parameter.grad is None or torch.equal(parameter.grad, other.grad), key


def calls_of(method: Method) -> Counter[str]:
    """How often each part is called, counted from now on."""
    calls: Counter[str] = Counter()
    parts = {"encoder": method.encoder, "heads": method.charts.heads}
    parts |= {"target": method.target} if hasattr(method, "target") else {}
    parts |= {key: getattr(method, key) for key in ("predictors", "membership") if hasattr(method, key)}
    for name, part in parts.items():
        part.register_forward_hook(lambda *_, name=name: calls.update([name]))
    return calls


@pytest.mark.parametrize("name", TWO_VIEW)
def test_each_view_passes_once_through_every_part(name: str) -> None:
    """Six pairs of four views. TiCo's network sees all but the last, its target all but the first."""
    method = build_small(name, num_views=4)
    calls = calls_of(method)
    method.loss(make_views(method))
    assert set(calls.values()) == {3 if name.startswith("tico") else 4}
    assert ("target" in calls) == name.startswith(("byol", "tico"))
    assert ("predictors" in calls) == name.startswith(("byol", "simsiam"))
    assert ("membership" in calls) == (name == "simclr-ua")


@pytest.mark.parametrize("name", ["simclr", "simclr-ua", "barlow-twins", "vicreg", "byol", "simsiam"])
def test_the_order_of_views_changes_no_part(name: str) -> None:
    method = build_small(name, num_views=3).double()
    frames = make_views(method).frames_BTCHW.double()
    expected = method.loss(Batch(frames)).parts
    for order in permutations(range(3)):
        found = method.loss(Batch(frames[:, list(order)])).parts
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_the_mean_is_over_all_pairs_each_counted_once_the_earlier_view_first() -> None:
    # 12, 13, 14, 23, 24, 34 of four views: their sum is 120, their mean 20.
    seen: list[tuple[int, int]] = []

    def loss(s: int, t: int) -> Tensor:
        seen.append((s, t))
        return torch.tensor(10.0 * (s + 1) + t + 1)

    assert float(mean_over_view_pairs(loss, 4)) == 20.0
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert float(mean_over_view_pairs(loss, 2)) == 12.0
