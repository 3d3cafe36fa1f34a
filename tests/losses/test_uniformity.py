"""Uniformity on the sphere: values by hand, the measure of `diagnose`, zero vectors."""

import math

import pytest
import torch
from torch import Tensor

from manicap.diagnostics.geometry import uniformity as measured
from manicap.losses.uniformity import UniformityRegularizer, uniformity


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_orthogonal_samples_have_minus_two_scales_and_equal_ones_zero() -> None:
    # |f - f'|^2 = 2 for all pairs: log exp(-2 scale).
    spread = 3 * torch.eye(4, 6).double()[:, None]
    assert uniformity(spread).item() == pytest.approx(-4, rel=1e-14)
    assert uniformity(spread, scale=0.5).item() == pytest.approx(-1, rel=1e-14)
    assert uniformity(torch.ones(3, 2, 5).double()).item() == pytest.approx(0, abs=1e-14)
    # Two opposite samples: |f - f'|^2 = 4, the lowest there is.
    assert uniformity(torch.tensor([[[1.0]], [[-2.0]]])).item() == pytest.approx(-8)


def test_three_samples_by_hand() -> None:
    # East, east, north: pairs at squared distance 0, 2, 2, each counted twice of 6.
    z = torch.tensor([[2.0, 0.0], [5.0, 0.0], [0.0, 1.0]]).double()[:, None]
    assert uniformity(z).item() == pytest.approx(math.log((1 + 2 * math.exp(-4)) / 3), rel=1e-14)


def test_it_is_the_mean_over_heads_of_what_diagnose_measures() -> None:
    z = randn(7, 3, 5)
    expected = sum(measured(z[:, head].numpy()) for head in range(3)) / 3
    assert uniformity(z).item() == pytest.approx(expected, rel=1e-12)
    assert UniformityRegularizer(2.0)(z)[0].item() == pytest.approx(2 * expected, rel=1e-12)
    assert UniformityRegularizer(2.0, scale=1.0)(z)[0].item() == pytest.approx(2 * uniformity(z, 1.0).item())


def test_zero_vectors_are_equal_samples_at_distance_one_from_the_others() -> None:
    assert uniformity(torch.zeros(4, 2, 3)).item() == pytest.approx(0, abs=1e-6)
    # Zero, zero, east: pairs at squared distance 0, 1, 1.
    z = torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]]).double()
    expected = math.log((1 + 2 * math.exp(-2)) / 3)
    assert uniformity(z[:, None]).item() == pytest.approx(expected, rel=1e-14)
    assert measured(z.numpy()) == pytest.approx(expected, rel=1e-14)


def test_collapsed_heads_get_a_finite_gradient() -> None:
    z = torch.zeros(4, 2, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(uniformity(z), z)
    assert torch.equal(gradient, torch.zeros(4, 2, 3))


def test_a_zero_vector_gets_no_gradient() -> None:
    z = randn(4, 2, 5)
    z[1, 0] = 0
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(uniformity(z), z)
    assert torch.isfinite(gradient).all()
    assert torch.equal(gradient[1, 0], torch.zeros(5, dtype=torch.float64))
    assert gradient[1, 1].abs().sum() > 0


def test_errors() -> None:
    with pytest.raises(ValueError, match="uniformity needs at least 2 samples, got 1"):
        uniformity(randn(1, 2, 3))
    with pytest.raises(ValueError, match=r"uniformity needs heads of shape \[B, N, D\], got \[2, 3\]"):
        uniformity(randn(2, 3))
