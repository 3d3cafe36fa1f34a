"""InfoNCE: values by hand, invariances, gradients, memory, errors."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from manicap.losses.infonce import cpc_infonce, global_local_infonce, infonce, local_local_infonce


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_zero_predictions_cost_log_B() -> None:
    # All logits 0: a uniform guess among B = 7.
    targets = randn(7, 5, 3)
    expected = torch.tensor(math.log(7), dtype=torch.float64)
    torch.testing.assert_close(global_local_infonce(torch.zeros(7, 2, 3).double(), targets), expected)
    torch.testing.assert_close(local_local_infonce(torch.zeros(7, 5, 3).double(), targets), expected)
    torch.testing.assert_close(infonce(torch.zeros(7, 3).double(), targets[:, 0]), expected)


def test_infonce_of_two_samples_by_hand() -> None:
    # Logits [[2, 0], [0, 4]]: -log(e^2 / (e^2 + 1)) = log(1 + e^-2) and log(1 + e^-4).
    anchors, targets = torch.tensor([[2.0, 0.0], [0.0, 4.0]]).double(), torch.eye(2).double()
    expected = torch.tensor((math.log1p(math.exp(-2)) + math.log1p(math.exp(-4))) / 2, dtype=torch.float64)
    torch.testing.assert_close(infonce(anchors, targets), expected)
    torch.testing.assert_close(global_local_infonce(anchors[:, None], targets[:, None]), expected)
    torch.testing.assert_close(local_local_infonce(anchors[:, None], targets[:, None]), expected)


def test_one_sample_has_nothing_to_choose_from() -> None:
    # One logit: probability 1, loss 0, gradient 0.
    anchors = randn(1, 4).requires_grad_()
    loss = infonce(anchors, randn(1, 4, seed=1))
    loss.backward()
    assert loss.item() == 0
    assert anchors.grad is not None
    assert torch.equal(anchors.grad, torch.zeros(1, 4, dtype=torch.float64))


def test_a_vector_added_to_all_targets_changes_nothing() -> None:
    # It adds the same number to every logit of an anchor.
    predictions, targets = randn(6, 3, 4), randn(6, 5, 4, seed=1)
    shifted = targets + randn(4, seed=2)
    torch.testing.assert_close(global_local_infonce(predictions, targets), global_local_infonce(predictions, shifted))
    predictions = randn(6, 5, 4)
    torch.testing.assert_close(local_local_infonce(predictions, targets), local_local_infonce(predictions, shifted))


def test_order_of_samples_heads_and_positions_changes_nothing() -> None:
    predictions, targets = randn(6, 3, 4), randn(6, 5, 4, seed=1)
    b, n, p = torch.tensor([3, 1, 0, 5, 2, 4]), torch.tensor([2, 0, 1]), torch.tensor([4, 2, 0, 1, 3])
    permuted = global_local_infonce(predictions[b][:, n], targets[b][:, p])
    torch.testing.assert_close(global_local_infonce(predictions, targets), permuted)


def test_logits_of_a_thousand_stay_finite() -> None:
    # The gap of 1000 between own and other logits leaves a loss of exp(-1000) = 0 one way and 1000 the other.
    anchors = torch.tensor([[1000.0, 0.0], [0.0, 1000.0]])
    assert infonce(anchors, torch.eye(2)).item() == 0
    assert infonce(-anchors, torch.eye(2)).item() == 1000


def test_gradients_are_right() -> None:
    assert torch.autograd.gradcheck(infonce, (randn(4, 3).requires_grad_(), randn(4, 3, seed=1).requires_grad_()))
    global_inputs = (randn(4, 2, 3).requires_grad_(), randn(4, 5, 3, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(global_local_infonce, global_inputs)
    local_inputs = (randn(4, 5, 3).requires_grad_(), randn(4, 5, 3, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(local_local_infonce, local_inputs)


def cpc_inputs(B: int = 3, T: int = 5, C: int = 4) -> tuple[dict[int, Tensor], Tensor]:
    predictions = {k: randn(B, T - k, C, seed=k).requires_grad_() for k in (1, 3)}
    return predictions, randn(B, T, C, seed=9).requires_grad_()


@pytest.mark.parametrize("chunk_rows", [1, 5, 1000])
def test_cpc_equals_its_literal_loop_for_any_chunk(chunk_rows: int) -> None:
    predictions, targets = cpc_inputs()
    literal = torch.zeros((), dtype=torch.float64)
    for k, prediction in predictions.items():
        pool = targets[:, k:].reshape(-1, 4)
        logits = prediction.reshape(-1, 4) @ pool.t()
        literal = literal + cross_entropy(logits, torch.arange(len(pool))) / len(predictions)
    ours = cpc_infonce(predictions, targets, chunk_rows)
    torch.testing.assert_close(ours, literal, rtol=1e-13, atol=0)
    leaves = [*predictions.values(), targets]
    for mine, theirs in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(literal, leaves), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-15)


def test_cpc_gradients_are_right() -> None:
    predictions, targets = cpc_inputs()
    assert torch.autograd.gradcheck(
        lambda one, three, z: cpc_infonce({1: one, 3: three}, z, 4), (predictions[1], predictions[3], targets)
    )


def test_cpc_keeps_no_logits() -> None:
    # 20 x 30 anchors and as many targets: 360,000 logits, of which 16 rows may live. What is kept for the backward
    # pass is the gradients of the inputs, two tensors of 29 * 20 * 4 numbers.
    saved: list[int] = []

    def pack(x: Tensor) -> Tensor:
        saved.append(x.numel())
        return x

    predictions, targets = {1: randn(20, 29, 4).requires_grad_()}, randn(20, 30, 4, seed=1).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        cpc_infonce(predictions, targets, chunk_rows=16)
    assert max(saved) <= 20 * 30 * 4


def test_autocast_does_not_lower_the_precision() -> None:
    predictions, targets = randn(6, 3, 4).float(), randn(6, 5, 4, seed=1).float()
    plain = global_local_infonce(predictions, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(global_local_infonce(predictions, targets), plain)


def test_shape_errors_say_what_is_needed_and_what_came() -> None:
    with pytest.raises(ValueError, match=r"needs predictions_BNC \[B, N, C\].*got \[4, 2, 3\] and \[4, 5, 6\]"):
        global_local_infonce(torch.zeros(4, 2, 3), torch.zeros(4, 5, 6))
    with pytest.raises(ValueError, match=r"of one shape with 3 axes, got \[4, 5, 3\] and \[4, 6, 3\]"):
        local_local_infonce(torch.zeros(4, 5, 3), torch.zeros(4, 6, 3))
    with pytest.raises(ValueError, match=r"infonce needs .* 2 axes, got \[4, 5\] and \[4, 6\]"):
        infonce(torch.zeros(4, 5), torch.zeros(4, 6))
    with pytest.raises(ValueError, match=r"predictions\[2\] is \[4, 4, 3\]"):
        cpc_infonce({2: torch.zeros(4, 4, 3)}, torch.zeros(4, 5, 3))
    with pytest.raises(ValueError, match="at least one step"):
        cpc_infonce({}, torch.zeros(4, 5, 3))
    with pytest.raises(ValueError, match="chunk_rows of at least 1, got 0"):
        cpc_infonce({2: torch.zeros(4, 3, 3)}, torch.zeros(4, 5, 3), chunk_rows=0)
    with pytest.raises(ValueError, match="empty tensor"):
        infonce(torch.zeros(0, 3), torch.zeros(0, 3))
    for predictions, targets in ((0, 5), (2, 0)):  # no heads, no positions
        with pytest.raises(ValueError, match="empty tensor"):
            global_local_infonce(torch.zeros(4, predictions, 3), torch.zeros(4, targets, 3))
    for step in (0, 5):  # the same frame, one after the last
        with pytest.raises(ValueError, match=rf"0 < k < T.*predictions\[{step}\]"):
            cpc_infonce({step: torch.zeros(4, 5 - step, 3)}, torch.zeros(4, 5, 3))
