"""MMCR: values by hand, invariance, gradient, errors."""

import math

import pytest
import torch
from torch import Tensor

from manicap.losses.capacity import CapacityRegularizer
from manicap.losses.mmcr import mmcr


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_equal_views_of_orthogonal_samples_reach_the_bound() -> None:
    # C = I: B = 3 singular values of 1.
    views = 7 * torch.eye(3, dtype=torch.float64)[:, None].expand(-1, 4, -1)
    assert mmcr(views).item() == pytest.approx(-3, rel=1e-12)


def test_views_at_a_right_angle_shorten_the_centroids() -> None:
    # Each sample's two views are orthogonal: centroids of length 1/sqrt 2, orthogonal to each other.
    views = torch.eye(4, dtype=torch.float64).view(2, 2, 4)
    assert mmcr(views).item() == pytest.approx(-2 / math.sqrt(2), rel=1e-12)


def test_equal_samples_have_one_singular_value() -> None:
    # B equal rows of length 1: sqrt(B).
    views = torch.ones(9, 2, 5, dtype=torch.float64)
    assert mmcr(views).item() == pytest.approx(-3, rel=1e-12)


def test_it_equals_the_literal_form_and_the_capacity_of_views() -> None:
    views = randn(6, 3, 4)
    literal = -torch.linalg.svdvals((views / views.norm(dim=2, keepdim=True)).mean(1)).sum()
    torch.testing.assert_close(mmcr(views), literal, rtol=1e-12, atol=0)
    torch.testing.assert_close(mmcr(views), CapacityRegularizer(1.0)(views)[0], rtol=1e-14, atol=0)


def test_lengths_the_order_of_views_and_a_rotation_change_nothing() -> None:
    views = randn(6, 3, 4)
    moved = (1 + randn(6, 3, 1, seed=1).abs()) * views[:, [2, 0, 1]] @ torch.linalg.qr(randn(4, 4, seed=2))[0]
    torch.testing.assert_close(mmcr(views), mmcr(moved), rtol=1e-12, atol=0)


def test_the_gradient_is_right() -> None:
    assert torch.autograd.gradcheck(mmcr, (randn(4, 3, 5).requires_grad_(),))


def test_one_view_or_one_sample_is_refused() -> None:
    with pytest.raises(ValueError, match=r"T of at least 2, got \[4, 1, 3\]"):
        mmcr(torch.zeros(4, 1, 3))
    with pytest.raises(ValueError, match="needs at least 2 samples, got 1"):
        mmcr(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match=r"^mmcr needs views_BTD .* got \[4, 2, 0\]"):
        mmcr(torch.zeros(4, 2, 0))
