"""Barlow Twins: values by hand, invariances, conventions. `test_two_view_literal` has the loop and the gradients."""

import pytest
import torch
from torch import Tensor

from manicap.losses import redundancy
from manicap.losses.redundancy import BarlowRegularizer, barlow_twins, standardize


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def hadamard() -> Tensor:
    """Four samples of two units with mean 0, variance 1 (over 4) and correlation 0."""
    return torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)[:, None]


def test_equal_views_of_uncorrelated_units_cost_nothing() -> None:
    assert barlow_twins(hadamard(), hadamard(), variance_correction=0, variance_epsilon=0).item() == 0


def test_the_2021_convention_leaves_one_over_B_on_the_diagonal() -> None:
    # Variance over B - 1, correlation over B: the diagonal is 3/4, twice (1/4)^2.
    assert barlow_twins(hadamard(), hadamard(), variance_epsilon=0).item() == pytest.approx(2 / 16, rel=1e-14)


def test_equal_units_cost_lambda_each_way() -> None:
    # Both units the same: correlations all 1, two of them off the diagonal.
    z = hadamard()[..., :1].expand(-1, -1, 2)
    loss = barlow_twins(z, z, off_diagonal_weight=0.3, variance_correction=0, variance_epsilon=0)
    assert loss.item() == pytest.approx(2 * 0.3, rel=1e-14)


def test_two_heads_by_hand() -> None:
    # Head 1 is head 0 with its units exchanged. Pairs (0, 0), (1, 1) cost nothing; in (0, 1), (1, 0) the diagonal is
    # 0 and the rest 1: 2 + 2 lambda. Mean over the four pairs: 1 + lambda.
    z = torch.cat([hadamard(), hadamard().flip(2)], dim=1)
    loss = barlow_twins(z, z, off_diagonal_weight=0.3, variance_correction=0, variance_epsilon=0)
    assert loss.item() == pytest.approx(1.3, rel=1e-14)


def test_scale_and_shift_of_a_unit_change_nothing() -> None:
    z, other = randn(6, 3, 4), randn(6, 3, 4, seed=1)
    moved = z * (1 + randn(3, 4, seed=2).abs()) + randn(3, 4, seed=3)
    options = {"variance_epsilon": 0.0}
    torch.testing.assert_close(barlow_twins(z, other, **options), barlow_twins(moved, other, **options))  # type: ignore[arg-type]


def test_a_constant_unit_is_finite_with_its_gradient() -> None:
    z = randn(6, 2, 4)
    z[:, 0, 1] = 3.0
    z.requires_grad_()
    loss = barlow_twins(z, randn(6, 2, 4, seed=1))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]


def test_standardize_divides_by_the_chosen_variance() -> None:
    # 0, 2: variance 1 over 2 samples, 2 over 1.
    z = torch.tensor([0.0, 2.0], dtype=torch.float64)[:, None, None]
    assert standardize(z, 0, 0.0).flatten().tolist() == [-1, 1]
    assert standardize(z, 1, 0.0).flatten().tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5])


def test_normalised_outputs_have_no_length() -> None:
    z, other = randn(6, 3, 4), randn(6, 3, 4, seed=1)
    lengthened = z * (1 + randn(6, 3, 1, seed=2).abs())
    expected = barlow_twins(z, other, normalize=True)
    torch.testing.assert_close(barlow_twins(lengthened, other, normalize=True), expected)
    assert barlow_twins(lengthened, other).item() != pytest.approx(barlow_twins(z, other).item(), rel=1e-3)


def test_the_eps_is_small_beside_normalised_outputs_of_the_papers_width() -> None:
    # Equal views, lambda 0, variance over B: the loss is sum_d (eps / (var_d + eps))^2, with variances about 1. At
    # 2048 units that is 2048 * (1e-5)^2 = 2e-7. Outputs of length 1 have variances of 1/2048, and it would be 0.8.
    z = randn(64, 1, 2048)
    loss = barlow_twins(z, z, off_diagonal_weight=0, variance_correction=0, normalize=True)
    assert loss.item() == pytest.approx(2e-7, rel=0.5)


def test_a_normalised_output_of_length_zero_is_finite_with_its_gradient() -> None:
    z = randn(6, 2, 4)
    z[2, 1] = 0
    z.requires_grad_()
    loss = barlow_twins(z, randn(6, 2, 4, seed=1), normalize=True)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(5, 2, 4), (12, 2, 3)])  # by Gram matrices, and by correlations
@pytest.mark.parametrize("normalize", [False, True])
def test_heads_compared_with_themselves_are_prepared_once(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], normalize: bool
) -> None:
    calls = []
    monkeypatch.setattr(redundancy, "gather_rows", lambda z: calls.append(0) or z)
    z = randn(*shape).requires_grad_()
    loss = barlow_twins(z, z, 0.3, normalize=normalize)
    (gradient,) = torch.autograd.grad(loss, z)
    assert len(calls) == 1
    # The same numbers in another tensor: both are prepared, and the gradient is the sum of theirs.
    other = z.detach().clone().requires_grad_()
    expected = barlow_twins(z, other, 0.3, normalize=normalize)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(gradient, sum(torch.autograd.grad(expected, (z, other))), rtol=1e-10, atol=1e-12)


def test_the_regularizer_compares_heads_of_the_same_samples_with_each_other() -> None:
    z = randn(6, 2, 3)
    pairs = [barlow_twins(z[:, i : i + 1], z[:, j : j + 1], 0.005).item() for i in range(2) for j in range(2)]
    assert BarlowRegularizer(2.0)(z)[0].item() == pytest.approx(2 * sum(pairs) / 4, rel=1e-12)
    assert BarlowRegularizer(2.0, off_diagonal_weight=1.0)(z)[0].item() == pytest.approx(
        2 * barlow_twins(z, z, 1.0).item(), rel=1e-12
    )
