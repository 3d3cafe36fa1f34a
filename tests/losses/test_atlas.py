"""The unbalanced atlas loss: its ends, a value by hand, gradients, the error."""

import pytest
import torch

from manicap.losses.atlas import unbalance


def test_uniform_membership_costs_nothing_and_one_chart_is_the_minimum() -> None:
    assert unbalance(torch.full((5, 4), 0.25)).item() == 0
    # One-hot of 4: (3/4)^2 + 3 (1/4)^2 = 3/4 = 1 - 1/4.
    assert unbalance(torch.eye(4)).item() == -0.75


def test_two_samples_by_hand() -> None:
    # (0.2, 0.8): 2 * 0.3^2 = 0.18; (0.5, 0.5): 0. Mean 0.09.
    assert unbalance(torch.tensor([[0.2, 0.8], [0.5, 0.5]]).double()).item() == pytest.approx(-0.09, rel=1e-7)


def test_order_of_charts_changes_nothing() -> None:
    q = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).double().softmax(1)
    torch.testing.assert_close(unbalance(q), unbalance(q[:, [2, 0, 3, 1]]))


def test_gradient_is_right() -> None:
    q = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    assert torch.autograd.gradcheck(unbalance, (q,))


def test_error_says_what_came() -> None:
    with pytest.raises(ValueError, match=r"membership_BN of shape \[B, N\], got \[3\]"):
        unbalance(torch.zeros(3))
