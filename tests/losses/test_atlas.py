"""The unbalanced atlas loss: its ends, a value by hand, gradients, the error."""

import math

import pytest
import torch

from manicap.losses.atlas import certainty, chart_error, imbalance, unbalance


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


@pytest.mark.parametrize(("shape", "named"), [((3,), r"\[3\]"), ((0, 3), r"\[0, 3\]")])
def test_error_says_what_came(shape, named) -> None:
    with pytest.raises(ValueError, match=rf"membership_BN of shape \[B, N\], got {named}"):
        unbalance(torch.zeros(shape))


def test_chart_error_by_hand():
    # Chart 0 misses the first point by (1, 0), chart 1 by (0, 2): 3/4 x 1 + 1/4 x 4 = 7/4. The second point is met.
    points = torch.tensor([[1.0, 1.0], [2.0, 0.0]])
    decoded = torch.tensor([[[2.0, 1.0], [1.0, 3.0]], [[2.0, 0.0], [2.0, 0.0]]])
    assert chart_error(points, decoded, torch.tensor([[0.75, 0.25], [0.5, 0.5]])).item() == 7 / 8


def test_certainty_and_imbalance_at_their_ends():
    one_hot, uniform = torch.eye(4, dtype=torch.float64), torch.full((3, 4), 0.25, dtype=torch.float64)
    assert certainty(one_hot).item() == 0
    assert certainty(uniform).item() == pytest.approx(-math.log(4), abs=1e-15)
    # Every sample sure of a chart of its own: all charts used alike. All in one chart: log N.
    assert imbalance(one_hot).item() == pytest.approx(0, abs=1e-15)
    assert imbalance(one_hot[:1].expand(5, 4)).item() == pytest.approx(math.log(4), abs=1e-15)


def test_the_terms_of_an_atlas_have_their_gradients():
    torch.manual_seed(0)
    logits, decoded = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, 4, dtype=torch.float64)
    points = torch.randn(3, 4, dtype=torch.float64)

    def terms(logits, decoded):
        q = logits.softmax(1)
        return chart_error(points, decoded, q), certainty(q), imbalance(q)

    assert torch.autograd.gradcheck(terms, (logits.requires_grad_(), decoded.requires_grad_()))


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="chart_error needs"):
        chart_error(torch.zeros(3, 2), torch.zeros(3, 4, 2), torch.zeros(3, 5))


@pytest.mark.parametrize(("mean", "fewest", "most"), [(8.0, 1, 1), (0.0, 3, 4)])
def test_the_unbalanced_atlas_ends_in_one_chart_because_features_have_a_mean(mean, fewest, most):
    # A constant membership of one chart reaches the minimum, -(1 - 1/N), like any other certain one. A linear
    # membership sees the mean of the features first: if it is long, all samples share their largest logit, which grows.
    generator = torch.Generator().manual_seed(0)
    features_BF = torch.randn(400, 20, generator=generator) + mean
    weight_NF = (0.1 * torch.randn(4, 20, generator=generator)).requires_grad_()
    optimizer = torch.optim.Adam([weight_NF], 1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        unbalance((features_BF @ weight_NF.T).softmax(1)).backward()
        optimizer.step()
    used = (features_BF @ weight_NF.T).argmax(1).bincount(minlength=4) > 20
    assert fewest <= int(used.sum()) <= most
