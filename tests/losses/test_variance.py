"""The terms of VICReg: values by hand and invariances. `test_two_view_literal` has the loop and the gradients."""

import pytest
import torch
from torch import Tensor

from manicap.losses.variance import VICRegularizer, covariance_penalty, invariance, variance_hinge


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_invariance_by_hand() -> None:
    # One unit; heads 0 and 2 against heads 1 and 5: squares 1, 25, 1, 9, mean 9. Twice the same sample.
    z = torch.tensor([[0.0, 2.0], [0.0, 2.0]])[..., None]
    other = torch.tensor([[1.0, 5.0], [1.0, 5.0]])[..., None]
    assert invariance(z, other).item() == 9


def test_a_common_shift_does_not_change_the_invariance_even_far_from_zero() -> None:
    # In float32 at 10,000 the expanded square would have no digit left.
    z, other = torch.tensor([[[1.0]], [[2.0]]]), torch.tensor([[[1.5]], [[2.5]]])
    assert invariance(z + 10_000, other + 10_000).item() == 0.25


def test_variance_hinge_by_hand() -> None:
    # Samples 0, 0.6: variance 0.18 over B - 1 = 1. Samples 0, 9: no shortfall. Mean over the two units.
    z = torch.tensor([[0.0, 0.0], [0.6, 9.0]], dtype=torch.float64)[:, None]
    assert variance_hinge(z, variance_epsilon=0.0).item() == pytest.approx((1 - 0.18**0.5) / 2, rel=1e-14)
    # A constant has variance 0: sqrt(1e-4) = 0.01 short of 1.
    assert variance_hinge(torch.ones(4, 3, 2, dtype=torch.float64)).item() == pytest.approx(0.99, rel=1e-14)


def test_covariance_penalty_by_hand() -> None:
    # Two equal units of samples -1, 1: covariance 2 over B - 1 = 1, twice squared, over D = 2.
    z = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])[:, None]
    assert covariance_penalty(z).item() == 4
    # Uncorrelated units: nothing.
    z = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])[:, None]
    assert covariance_penalty(z).item() == 0


def test_a_shift_of_all_samples_changes_neither() -> None:
    z, shift = randn(6, 3, 4), randn(3, 4, seed=1)
    torch.testing.assert_close(variance_hinge(z), variance_hinge(z + shift), rtol=1e-12, atol=0)
    torch.testing.assert_close(covariance_penalty(z), covariance_penalty(z + shift), rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", [variance_hinge, covariance_penalty])
def test_a_matrix_without_heads_is_refused(loss) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=rf"{loss.__name__} needs heads of shape .B, N, D., got .4, 3."):
        loss(torch.zeros(4, 3))
    with pytest.raises(ValueError, match=rf"{loss.__name__} needs heads of shape .B, N, D., got .4, 2, 0."):
        loss(torch.zeros(4, 2, 0))


def test_the_regularizer_is_25_variances_and_one_covariance() -> None:
    z = 0.5 * randn(6, 2, 3)
    variance, covariance = variance_hinge(z).item(), covariance_penalty(z).item()
    assert VICRegularizer(2.0)(z)[0].item() == pytest.approx(2 * (25 * variance + covariance), rel=1e-13)
    other = VICRegularizer(2.0, variance_weight=1, covariance_weight=3)
    assert other(z)[0].item() == pytest.approx(2 * (variance + 3 * covariance), rel=1e-13)


def test_of_two_views_the_regularizer_has_half_the_covariance_of_the_method() -> None:
    # VICReg's code: 25 (v + v') / 2 + c + c'. The regularizer is the mean of 25 v + c and 25 v' + c'.
    z, z_other = 0.5 * randn(6, 2, 3), 0.5 * randn(6, 2, 3, seed=1)
    variance, covariance = (term(z).item() + term(z_other).item() for term in (variance_hinge, covariance_penalty))
    found = VICRegularizer(1.0)(z, other_BND=z_other)[0].item()
    assert found == pytest.approx(25 * variance / 2 + covariance / 2, rel=1e-13)
    as_in_the_code = VICRegularizer(1.0, covariance_weight=2.0)(z, other_BND=z_other)[0].item()
    assert as_in_the_code == pytest.approx(25 * variance / 2 + covariance, rel=1e-13)
