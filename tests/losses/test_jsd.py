"""The Jensen-Shannon loss: values by hand, the literal loop, gradients, errors."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from manicap.losses.jsd import global_local_jsd, local_local_jsd


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_zero_scores_cost_two_log_two() -> None:
    # softplus(0) = log 2, once for the positives and once for the negatives.
    expected = torch.tensor(2 * math.log(2), dtype=torch.float64)
    torch.testing.assert_close(global_local_jsd(torch.zeros(4, 2, 3).double(), randn(4, 5, 3)), expected)
    torch.testing.assert_close(local_local_jsd(torch.zeros(4, 5, 3).double(), randn(4, 5, 3)), expected)


def test_two_samples_by_hand() -> None:
    # Scores [[2, 1], [1, 4]]: positives softplus(-2), softplus(-4); negatives softplus(1) twice.
    anchors, targets = torch.tensor([[2.0, 1.0], [1.0, 4.0]]).double()[:, None], torch.eye(2).double()[:, None]
    expected = (math.log1p(math.exp(-2)) + math.log1p(math.exp(-4))) / 2 + math.log1p(math.exp(1))
    assert global_local_jsd(anchors, targets).item() == pytest.approx(expected, rel=1e-14)
    assert local_local_jsd(anchors, targets).item() == pytest.approx(expected, rel=1e-14)


def literal(predictions: Tensor, targets: Tensor) -> Tensor:
    """Every pair in a Python loop. `predictions` is `[B, P, C]`."""
    B, P, _ = predictions.shape
    positives, negatives = [], []
    for p in range(P):
        for b in range(B):
            for other in range(B):
                score = predictions[b, p] @ targets[other, p]
                if b == other:
                    positives.append(softplus(-score))
                else:
                    negatives.append(softplus(score))
    return torch.stack(positives).mean() + torch.stack(negatives).mean()


def test_losses_equal_the_literal_loop() -> None:
    predictions, targets = randn(4, 3, 5), randn(4, 3, 5, seed=1)
    torch.testing.assert_close(local_local_jsd(predictions, targets), literal(predictions, targets), rtol=1e-13, atol=0)
    heads = randn(4, 2, 5, seed=2)
    per_head = [literal(heads[:, n, None].expand(-1, 3, -1), targets) for n in range(2)]
    expected = torch.stack(per_head).mean()
    torch.testing.assert_close(global_local_jsd(heads, targets), expected, rtol=1e-13, atol=0)


def test_order_of_samples_changes_nothing() -> None:
    predictions, targets, order = randn(4, 3, 5), randn(4, 3, 5, seed=1), torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        local_local_jsd(predictions, targets), local_local_jsd(predictions[order], targets[order])
    )


def test_gradients_are_right() -> None:
    inputs = (randn(3, 2, 4).requires_grad_(), randn(3, 5, 4, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(global_local_jsd, inputs)
    inputs = (randn(3, 5, 4).requires_grad_(), randn(3, 5, 4, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(local_local_jsd, inputs)


def test_errors_say_what_is_needed_and_what_came() -> None:
    with pytest.raises(ValueError, match="at least 2 frames"):
        local_local_jsd(torch.zeros(1, 5, 3), torch.zeros(1, 5, 3))
    with pytest.raises(ValueError, match=r"got \[4, 2, 3\] and \[5, 5, 3\]"):
        global_local_jsd(torch.zeros(4, 2, 3), torch.zeros(5, 5, 3))
    with pytest.raises(ValueError, match=r"of one shape \[B, P, C\], got \[4, 5, 3\] and \[4, 6, 3\]"):
        local_local_jsd(torch.zeros(4, 5, 3), torch.zeros(4, 6, 3))
