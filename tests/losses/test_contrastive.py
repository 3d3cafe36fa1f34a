"""NT-Xent: values by hand, invariances, extremes, errors. `test_two_view_literal` has the loop and the gradients."""

import math

import pytest
import torch
from torch import Tensor

from manicap.losses.contrastive import nt_xent


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_equal_embeddings_cost_the_logarithm_of_the_candidates() -> None:
    # Every similarity is 1: an anchor guesses among 2B - 1 = 13.
    ones = torch.ones(7, 2, 3, dtype=torch.float64)
    assert nt_xent(ones, ones).item() == pytest.approx(math.log(13), rel=1e-14)


def test_orthogonal_samples_by_hand() -> None:
    # Views agree, samples are orthogonal, B = 2, tau = 1/2: positives e^2, two negatives e^0. -log(e^2 / (e^2 + 2)).
    z = torch.eye(2, dtype=torch.float64)[:, None]
    assert nt_xent(z, z).item() == pytest.approx(math.log1p(2 * math.exp(-2)), rel=1e-14)


def test_two_heads_by_hand() -> None:
    # Heads 0 agree over the views, heads 1 are their opposites. Pairs (0, 0) and (1, 1): as above. Pairs (0, 1) and
    # (1, 0): the positive is e^-2, the negatives e^0: -log(e^-2 / (e^-2 + 2)) = log(1 + 2 e^2).
    z = torch.eye(2, dtype=torch.float64)[:, None]
    z = torch.cat([z, -z], dim=1)
    expected = (math.log1p(2 * math.exp(-2)) + math.log1p(2 * math.exp(2))) / 2
    assert nt_xent(z, z).item() == pytest.approx(expected, rel=1e-14)


def test_lengths_and_a_common_rotation_change_nothing() -> None:
    z, other = randn(6, 3, 4), randn(6, 3, 4, seed=1)
    rotation = torch.linalg.qr(randn(4, 4, seed=2))[0]
    lengths = 1 + randn(6, 3, 1, seed=3).abs()
    torch.testing.assert_close(nt_xent(z, other), nt_xent(lengths * z @ rotation, other @ rotation), rtol=1e-12, atol=0)


def test_the_views_may_change_places() -> None:
    z, other = randn(6, 3, 4), randn(6, 3, 4, seed=1)
    torch.testing.assert_close(nt_xent(z, other), nt_xent(other, z), rtol=1e-13, atol=0)


def test_the_smallest_temperature_stays_finite_in_float32_at_its_worst() -> None:
    # Positives opposite, negatives orthogonal: similarities -1 and 0 among exponentials that are shifted by 1.
    # One head, B = 2: -log(e^-40 / (e^-40 + 2)) = 40 + log 2, to float32's 7 digits.
    z = torch.eye(2)[:, None].requires_grad_()
    loss = nt_xent(z, -z, 0.025)
    loss.backward()
    assert loss.item() == pytest.approx(40 + math.log(2), rel=1e-6)
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]


def test_a_smaller_temperature_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a temperature of at least 0.025, got 0.01"):
        nt_xent(randn(4, 1, 3), randn(4, 1, 3), 0.01)
    with pytest.raises(ValueError, match=r"\[4, 1, 0\]"):
        nt_xent(randn(4, 1, 0), randn(4, 1, 0))
