"""Every two-view loss with capacity equals the loop over head pairs of Algorithm 3, in value and in every gradient."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.contrastive import nt_xent
from manicap.losses.redundancy import barlow_twins
from manicap.losses.regression import negative_cosine, normalized_regression
from manicap.losses.tico import covariance_contrast
from manicap.losses.variance import covariance_penalty, invariance, variance_hinge
from tests.literal import (
    barlow_twins_of_pair,
    byol_of_pair,
    cosine_of_pair,
    literal_two_view,
    nt_xent_of_pair,
    tico_of_pair,
    vicreg_of_pair,
)

Loss = Callable[[Tensor, Tensor], Tensor]
N = 3


def vicreg(z: Tensor, other: Tensor) -> Tensor:
    variance = (variance_hinge(z) + variance_hinge(other)) / 2
    return 25 * invariance(z, other) + 25 * variance + covariance_penalty(z) + covariance_penalty(other)


def barlow_twins_2021(a: Tensor, b: Tensor) -> Tensor:
    """As the code of arXiv 2104.13712: rows of length 1, then units over their unbiased deviation, without an eps."""
    return barlow_twins_of_pair(a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True), 0.005, 1, 0.0)


PAIRS: dict[str, tuple[Loss, Loss]] = {
    "nt_xent": (nt_xent, nt_xent_of_pair),
    "nt_xent_cold": (lambda a, b: nt_xent(a, b, 0.07), lambda a, b: nt_xent_of_pair(a, b, 0.07)),
    "barlow_twins": (barlow_twins, barlow_twins_of_pair),
    "barlow_twins_ddof_0": (
        lambda a, b: barlow_twins(a, b, 0.02, 0, 0.0),
        lambda a, b: barlow_twins_of_pair(a, b, 0.02, 0, 0.0),
    ),
    "barlow_twins_2021_code": (lambda a, b: barlow_twins(a, b, 0.005, 1, 0.0, normalize=True), barlow_twins_2021),
    "vicreg": (vicreg, vicreg_of_pair),
    "simsiam": (negative_cosine, cosine_of_pair),
    "byol": (normalized_regression, byol_of_pair),
}


def views(B: int, D: int, heads: int = N) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(B)
    shape = (B, heads, D)
    z, noise = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    return (3 * z).requires_grad_(), (3 * z + noise).detach().requires_grad_()


def assert_same(ours: Tensor, literal: Tensor, leaves: tuple[Tensor, Tensor]) -> None:
    torch.testing.assert_close(ours, literal, rtol=1e-12, atol=1e-13)
    for mine, theirs in zip(
        torch.autograd.grad(ours, leaves, allow_unused=True),
        torch.autograd.grad(literal, leaves, allow_unused=True),
        strict=True,
    ):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-13)


# More samples than units and fewer: the sums of squares take different routes.
@pytest.mark.parametrize("shape", [(7, 4), (4, 9), (40, 3)])
@pytest.mark.parametrize("name", PAIRS)
def test_the_loss_over_heads_equals_algorithm_3(name: str, shape: tuple[int, int]) -> None:
    loss, custom = PAIRS[name]
    z, other = views(*shape)
    ours = CapacityRegularizer(0.005)(z)[0] + loss(z, other)
    assert_same(ours, literal_two_view(z, other, custom), (z, other))


@pytest.mark.parametrize("name", PAIRS)
def test_one_head_is_the_plain_loss(name: str) -> None:
    loss, custom = PAIRS[name]
    z, other = views(6, 5, heads=1)
    assert_same(loss(z, other), custom(z[:, 0], other[:, 0]), (z, other))


def test_tico_over_heads_equals_algorithm_3() -> None:
    # The covariance is that of head i, so the pair's own loss depends on i: the loop is written out.
    z, other = views(5, 4)
    covariance = torch.randn(N, 4, 4, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    contrast, moved = covariance_contrast(z, covariance)
    ours = 1 + negative_cosine(z, other) + 8 * contrast
    literal = torch.zeros((), dtype=torch.float64)
    for i in range(N):
        for j in range(N):
            literal = literal + tico_of_pair(z[:, i], other[:, j], covariance[i]) / N**2
    assert_same(ours, literal, (z, other))
    unit = z[:, 1] / z[:, 1].norm(dim=1, keepdim=True)
    torch.testing.assert_close(moved[1], 0.9 * covariance[1] + 0.1 * unit.t() @ unit / 5, rtol=1e-12, atol=1e-15)
    assert not moved.requires_grad


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_right(name: str) -> None:
    z, other = views(4, 3, heads=2)
    # The targets of SimSiam and BYOL get none.
    stands_still = name in ("simsiam", "byol")
    assert torch.autograd.gradcheck(PAIRS[name][0], (z, other.detach() if stands_still else other))


def test_the_gradient_of_the_covariance_contrast_is_right() -> None:
    z, _ = views(4, 3, heads=2)
    covariance = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    covariance = covariance + covariance.mT
    assert torch.autograd.gradcheck(lambda z: covariance_contrast(z, covariance)[0], (z,))


@pytest.mark.parametrize("name", PAIRS)
def test_the_order_of_samples_and_heads_changes_nothing(name: str) -> None:
    z, other = (x.detach() for x in views(6, 5))
    b, i, j = torch.tensor([3, 1, 0, 5, 2, 4]), torch.tensor([2, 0, 1]), torch.tensor([1, 2, 0])
    loss = PAIRS[name][0]
    torch.testing.assert_close(loss(z, other), loss(z[b][:, i], other[b][:, j]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", PAIRS)
def test_half_precision_is_computed_in_float32(name: str) -> None:
    z, other = (x.detach().bfloat16() for x in views(6, 5))
    loss = PAIRS[name][0]
    with torch.autocast("cpu", torch.bfloat16):
        got = loss(z, other)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, loss(z.float(), other.float()), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", PAIRS)
def test_heads_of_different_shapes_are_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"needs the heads of both views, \[B, N, D\] each, got \[4, 2, 3\] and \[4, 1, 3\]"
    ):
        PAIRS[name][0](torch.zeros(4, 2, 3), torch.zeros(4, 1, 3))


@pytest.mark.parametrize("name", ["nt_xent", "barlow_twins", "vicreg"])
def test_a_single_sample_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="needs at least 2 samples, got 1"):
        PAIRS[name][0](torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
