"""The capacity regularizer: bounds, invariance, the automatic weight, what it logs."""

import math

import pytest
import torch
from torch import Tensor

from manicap.losses.capacity import CapacityRegularizer, centroids


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_orthogonal_samples_reach_the_bound() -> None:
    # All heads of sample b on axis b: the centroid matrix is the identity, norm B = sqrt(B min(B, D)).
    heads = 7 * torch.eye(4, 6).double()[:, None].repeat(1, 3, 1)
    loss, parts = CapacityRegularizer(0.5)(heads)
    assert loss.item() == pytest.approx(-2, rel=1e-13)
    assert parts["norm"] == pytest.approx(4, rel=1e-13)
    assert parts["bound"] == 4
    assert parts["percent"] == pytest.approx(100, rel=1e-13)
    assert parts["weight"] == 0.5
    assert "ratio" not in parts


def test_more_samples_than_units_are_bounded_by_sqrt_B_D() -> None:
    # 2 D samples, two on each axis: every singular value sqrt(2), norm D sqrt(2) = sqrt(B D).
    heads = torch.eye(3).double().repeat(2, 1)[:, None]
    _, parts = CapacityRegularizer(1.0)(heads)
    assert parts["bound"] == pytest.approx(math.sqrt(18), rel=1e-14)
    assert parts["percent"] == pytest.approx(100, rel=1e-13)


def test_equal_samples_have_norm_sqrt_B() -> None:
    heads = randn(1, 1, 5).repeat(16, 2, 1)
    _, parts = CapacityRegularizer(1.0)(heads)
    assert parts["norm"] == pytest.approx(4, rel=1e-10)


def test_one_sample_has_the_length_of_its_centroid() -> None:
    # Heads (3, 0) and (0, 5): centroid (1/2, 1/2), length 1 / sqrt(2).
    _, parts = CapacityRegularizer(1.0)(torch.tensor([[[3.0, 0.0], [0.0, 5.0]]]).double())
    assert parts["norm"] == pytest.approx(1 / math.sqrt(2), rel=1e-14)
    assert parts["bound"] == 1


def test_scale_of_each_head_changes_nothing() -> None:
    heads = randn(5, 3, 8)
    scales = torch.rand(5, 3, 1, generator=torch.Generator().manual_seed(1)).double() * 100 + 0.01
    regularizer = CapacityRegularizer(1.0)
    torch.testing.assert_close(regularizer(heads)[0], regularizer(heads * scales)[0], rtol=1e-13, atol=0)


def test_gradient_is_right() -> None:
    regularizer = CapacityRegularizer(1.0)
    assert torch.autograd.gradcheck(lambda heads: regularizer(heads)[0], (randn(4, 2, 5).requires_grad_(),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_heads_are_left_alone(dtype: torch.dtype) -> None:
    heads = randn(4, 2, 5, dtype=dtype)
    heads[1] = 0
    heads[2, 0] = 0
    heads.requires_grad_()
    loss, _ = CapacityRegularizer(1.0)(heads)
    loss.backward()
    assert torch.isfinite(loss)
    assert heads.grad is not None
    assert torch.isfinite(heads.grad).all()
    assert torch.equal(heads.grad[1], torch.zeros(2, 5, dtype=dtype))
    assert torch.equal(heads.grad[2, 0], torch.zeros(5, dtype=dtype))
    # The zero head still counts in the mean: half of the other.
    torch.testing.assert_close(centroids(heads)[2].norm(), torch.tensor(0.5, dtype=dtype))


def test_all_zero_heads_cost_nothing() -> None:
    regularizer = CapacityRegularizer(target_ratio=0.1)
    loss, parts = regularizer(torch.zeros(3, 2, 4, requires_grad=True), torch.tensor(2.0))
    assert loss.item() == 0
    assert parts["weight"] == 0
    # and leave the automatic weight usable
    loss, _ = regularizer(randn(3, 2, 4), torch.tensor(2.0))
    assert loss.item() == pytest.approx(-0.2, rel=1e-6)


def test_autocast_does_not_lower_the_precision() -> None:
    heads = randn(6, 3, 8, dtype=torch.float32)
    plain, _ = CapacityRegularizer(1.0)(heads)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(CapacityRegularizer(1.0)(heads)[0], plain)


def test_fixed_weight_logs_the_ratio_to_the_base_loss() -> None:
    # Norm 4, weight 0.5: the term is 2, a fifth of the base loss 10.
    heads = torch.eye(4, 6).double()[:, None]
    base_loss = torch.tensor(10.0, dtype=torch.float64, requires_grad=True)
    loss, parts = CapacityRegularizer(0.5)(heads, base_loss)
    assert parts["ratio"] == pytest.approx(0.2, rel=1e-13)
    assert not loss.requires_grad


def test_target_ratio_meets_its_target_and_smooths_after() -> None:
    # Identity of 4: norm 4. Base 10: average 10/4 = 2.5, weight 0.25, term 1. Then base 20, quotient 5: average
    # 0.9 * 2.5 + 0.1 * 5 = 2.75, weight 0.275.
    heads = torch.eye(4, 6).double()[:, None]
    regularizer = CapacityRegularizer(target_ratio=0.1, smoothing=0.9)
    loss, parts = regularizer(heads, torch.tensor(10.0))
    assert loss.item() == pytest.approx(-1, rel=1e-6)
    assert parts["ratio"] == pytest.approx(0.1, rel=1e-6)
    _, parts = regularizer(heads, torch.tensor(20.0))
    assert parts["weight"] == pytest.approx(0.275, rel=1e-6)


def test_evaluation_mode_does_not_move_the_average() -> None:
    heads = torch.eye(4, 6)[:, None]
    regularizer = CapacityRegularizer(target_ratio=0.1)
    regularizer(heads, torch.tensor(10.0))
    regularizer.eval()
    _, parts = regularizer(heads, torch.tensor(1000.0))
    assert parts["weight"] == pytest.approx(0.25, rel=1e-6)
    assert regularizer.average.item() == 2.5


def test_state_dict_carries_the_average() -> None:
    heads, base_loss = randn(4, 2, 6), torch.tensor(3.0)
    one, other = CapacityRegularizer(target_ratio=0.1), CapacityRegularizer(target_ratio=0.1)
    one(heads, base_loss)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(randn(4, 2, 6, seed=1), base_loss)[0], other(randn(4, 2, 6, seed=1), base_loss)[0])


def test_base_loss_gets_no_gradient_from_the_weight() -> None:
    heads = randn(4, 2, 6).requires_grad_()
    base_loss = torch.tensor(3.0, requires_grad=True)
    loss, _ = CapacityRegularizer(target_ratio=0.1)(heads, base_loss)
    loss.backward()
    assert base_loss.grad is None


def test_the_weight_is_a_constant_to_the_gradient_of_the_heads() -> None:
    heads = randn(4, 2, 6).requires_grad_()
    loss, parts = CapacityRegularizer(target_ratio=0.1)(heads, torch.tensor(3.0))
    fixed, _ = CapacityRegularizer(float(parts["weight"]))(heads)
    torch.testing.assert_close(*(torch.autograd.grad(each, heads)[0] for each in (loss, fixed)), rtol=1e-6, atol=0)


def test_a_negative_base_loss_counts_by_its_size() -> None:
    heads = torch.eye(4, 6).double()[:, None]
    loss, parts = CapacityRegularizer(target_ratio=0.1)(heads, torch.tensor(-10.0))
    assert loss.item() == pytest.approx(-1, rel=1e-6)
    assert parts["ratio"] == pytest.approx(0.1, rel=1e-6)


def test_small_averages_are_averages_too() -> None:
    # Norm 4. Bases 0 and 2, quotients 0 and 0.5: the average is 0, then 0.1 * 0.5 = 0.05, then 0.9 * 0.05 + 0.05.
    heads, regularizer = torch.eye(4, 6).double()[:, None], CapacityRegularizer(target_ratio=1, smoothing=0.9)
    weights = [regularizer(heads, torch.tensor(base))[1]["weight"] for base in (0.0, 2.0, 2.0)]
    assert weights == pytest.approx([0, 0.05, 0.095], rel=1e-6)
    regularizer.eval()
    assert regularizer(heads, torch.tensor(40.0))[1]["weight"] == pytest.approx(0.095, rel=1e-6)


def test_an_average_of_zero_holds_in_evaluation_mode() -> None:
    heads, regularizer = torch.eye(4, 6).double()[:, None], CapacityRegularizer(target_ratio=1)
    regularizer(heads, torch.tensor(0.0))
    assert regularizer.eval()(heads, torch.tensor(40.0))[1]["weight"] == 0


def test_what_is_logged_has_no_gradient() -> None:
    _, parts = CapacityRegularizer(target_ratio=0.1)(randn(4, 2, 6).requires_grad_(), torch.tensor(3.0))
    assert not any(part.requires_grad for part in parts.values() if isinstance(part, Tensor))


def test_without_smoothing_every_step_has_its_own_weight() -> None:
    heads, regularizer = torch.eye(4, 6).double()[:, None], CapacityRegularizer(target_ratio=0.1, smoothing=0)
    weights = [regularizer(heads, torch.tensor(base))[1]["weight"] for base in (10.0, 20.0)]
    assert weights == pytest.approx([0.25, 0.5], rel=1e-6)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="exactly one of epsilon and target_ratio"):
        CapacityRegularizer()
    with pytest.raises(ValueError, match="exactly one of epsilon and target_ratio"):
        CapacityRegularizer(0.1, target_ratio=0.1)
    for epsilon, sentence in (
        (-1.0, "not be negative"),
        (math.nan, "be a finite number"),
        (math.inf, "be a finite number"),
        ("1", "be of type float"),
    ):
        with pytest.raises(ValueError, match=f"epsilon must {sentence}"):
            CapacityRegularizer(epsilon)
    with pytest.raises(ValueError, match="target_ratio must be positive, got 0"):
        CapacityRegularizer(target_ratio=0)
    with pytest.raises(ValueError, match=r"smoothing must lie in \[0, 1\), got 1"):
        CapacityRegularizer(0.1, smoothing=1)
    with pytest.raises(ValueError, match="needs base_loss in every call"):
        CapacityRegularizer(target_ratio=0.1)(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match=r"heads_BND of shape \[B, N, D\], got \[2, 3\]"):
        CapacityRegularizer(0.1)(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"heads_BND of shape \[B, N, D\], got \[0, 3, 4\]"):
        CapacityRegularizer(0.1)(torch.zeros(0, 3, 4))


def test_centroids_are_of_heads() -> None:
    for shape in ((2, 3), (0, 3, 4)):
        with pytest.raises(ValueError, match=rf"centroids needs heads_BND of shape \[B, N, D\], got \{list(shape)}"):
            centroids(torch.zeros(shape))


def test_two_stacks_of_heads_give_the_mean_of_their_norms() -> None:
    # Four orthogonal samples: norm 4. Four equal ones: sqrt(4) = 2.
    spread = torch.eye(4, 6).double()[:, None].repeat(1, 3, 1)
    equal = randn(1, 1, 6).repeat(4, 3, 1)
    loss, parts = CapacityRegularizer(0.5)(spread, other_BND=equal)
    assert loss.item() == pytest.approx(-0.5 * 3, rel=1e-10)
    assert parts["percent"] == pytest.approx(75, rel=1e-10)
    assert parts["pretraining_percentage_error"] == pytest.approx(25, rel=1e-10)  # the bound is sqrt(4 * 4)


def test_two_stacks_of_heads_must_have_one_shape() -> None:
    with pytest.raises(ValueError, match=r"of one shape, got \[4, 3, 6\] and \[4, 2, 6\]"):
        CapacityRegularizer(0.5)(randn(4, 3, 6), other_BND=randn(4, 2, 6))
