"""Predicted targets and TiCo's covariance: values by hand, stopped gradients, errors."""

import pytest
import torch

from manicap.losses.regression import negative_cosine, normalized_regression
from manicap.losses.tico import covariance_contrast


def test_cosines_by_hand() -> None:
    # Samples at 0 and 60 degrees: cosines 1 and 1/2. |p - t|^2 = 2 - 2 cos: 0 and 1.
    prediction = torch.tensor([[2.0, 0.0], [3.0, 0.0]], dtype=torch.float64)[:, None]
    target = torch.tensor([[1.0, 0.0], [1.0, 3**0.5]], dtype=torch.float64)[:, None]
    assert negative_cosine(prediction, target).item() == pytest.approx(-0.75, rel=1e-14)
    assert normalized_regression(prediction, target).item() == pytest.approx(0.5, rel=1e-14)


def test_the_target_gets_no_gradient() -> None:
    prediction, target = torch.ones(2, 1, 3).requires_grad_(), torch.rand(2, 1, 3).requires_grad_()
    normalized_regression(prediction, target).backward()
    assert prediction.grad is not None
    assert target.grad is None


def test_lengths_change_nothing() -> None:
    prediction, target = torch.rand(5, 2, 3, dtype=torch.float64), torch.rand(5, 2, 3, dtype=torch.float64)
    torch.testing.assert_close(negative_cosine(prediction, target), negative_cosine(9 * prediction, target / 7))


def test_covariance_contrast_by_hand() -> None:
    # Two samples along e1, of any length: z z^T = diag(1, 0). C' = 0.9 diag(2, 4) + 0.1 diag(1, 0), e1^T C' e1 = 1.9.
    z = torch.tensor([[5.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)[:, None]
    contrast, moved = covariance_contrast(z, torch.diag(torch.tensor([2.0, 4.0], dtype=torch.float64))[None])
    assert contrast.item() == pytest.approx(1.9, rel=1e-14)
    torch.testing.assert_close(moved, torch.tensor([[[1.9, 0.0], [0.0, 3.6]]], dtype=torch.float64))


def test_a_covariance_of_other_heads_is_refused() -> None:
    with pytest.raises(ValueError, match=r"needs covariance_NDD of shape \[2, 3, 3\], got \[1, 3, 3\]"):
        covariance_contrast(torch.zeros(4, 2, 3), torch.zeros(1, 3, 3))
    with pytest.raises(ValueError, match=r"covariance_contrast needs heads .*, got \[4, 2, 0\]"):
        covariance_contrast(torch.zeros(4, 2, 0), torch.zeros(2, 0, 0))
    with pytest.raises(ValueError, match=r"normalized_regression needs .*\[4, 3\]"):
        normalized_regression(torch.zeros(4, 3), torch.zeros(4, 3))
