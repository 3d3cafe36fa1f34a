"""SIGReg: the Epps-Pulley statistic in closed form, its minimum, and the random directions."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from manicap.losses.sigreg import SIGRegularizer, epps_pulley


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def closed_form(x: Tensor) -> float:
    """The integral of the statistic over the whole line, with cos and exp multiplied out.

    int |phi_B|^2 w = mean_jk int cos(t (x_j - x_k)) w
    int cos(t d) exp(-k t^2 / 2) dt = sqrt(2 pi / k) exp(-d^2 / 2k)
    """
    pairs = math.sqrt(2 * math.pi) * torch.exp(-((x[:, None] - x) ** 2) / 2).mean()
    cross = math.sqrt(math.pi) * torch.exp(-(x**2) / 4).mean()
    return len(x) * float(pairs - 2 * cross + math.sqrt(2 * math.pi / 3))


def test_the_statistic_is_its_closed_form() -> None:
    for scale, shift in ((1.0, 0.0), (0.3, 0.0), (1.0, 1.5), (1.5, -0.5)):
        x = scale * randn(20) + shift
        # The sum over 17 nodes is exact to 1e-6: beyond 5 the weight is 4e-6, and samples are less than 10 apart.
        assert epps_pulley(x[:, None, None]).item() == pytest.approx(closed_form(x), rel=1e-4, abs=1e-4)


def test_the_integral_is_a_trapezoidal_sum_over_17_nodes() -> None:
    # Samples so far apart that the sum is not the integral, and the last node counts: node by node, as in the paper.
    x, nodes = 40 * randn(7).numpy(), np.linspace(-5, 5, 17)
    characteristic = np.exp(1j * nodes[:, None] * x).mean(1)
    heights = np.abs(characteristic - np.exp(-(nodes**2) / 2)) ** 2 * np.exp(-(nodes**2) / 2)
    expected = 7 * np.trapezoid(heights, nodes)
    assert epps_pulley(torch.from_numpy(x)[:, None, None]).item() == pytest.approx(expected, rel=1e-12)


def test_the_mean_over_heads_and_directions_counts() -> None:
    x = randn(9, 2, 3)
    each = [epps_pulley(x[:, n : n + 1, k : k + 1]) for n in range(2) for k in range(3)]
    torch.testing.assert_close(epps_pulley(x), torch.stack(each).mean(), rtol=1e-12, atol=0)


def test_normal_samples_have_the_lowest_statistic() -> None:
    # The quantiles of the normal distribution, as near to it as 200 samples can be; and the same wider and shifted.
    levels = (torch.arange(200, dtype=torch.float64) + 0.5) / 200
    x = math.sqrt(2) * torch.erfinv(2 * levels - 1)
    normal, narrow, shifted = (epps_pulley(each[:, None, None]).item() for each in (x, 0.5 * x, x + 1))
    assert 0 <= normal < 0.01
    assert narrow > 5
    assert shifted > 20


def test_the_largest_statistic_of_64_samples_is_that_of_the_documentation() -> None:
    # T is convex in the distribution: a point mass has the largest. It repeats every 2 pi / 0.625, the nodes' distance.
    points = torch.linspace(0, 2 * math.pi / 0.625, 2001, dtype=torch.float64)
    x_BK = points.expand(64, -1)
    largest = max(epps_pulley(x_BK[:, None, k : k + 1]).item() for k in range(len(points)))
    assert largest == pytest.approx(252, abs=0.5)
    assert largest > max(epps_pulley(scale * randn(64, 1, 1)).item() for scale in (1, 10, 100))


def test_directions_have_unit_length_change_at_every_training_step_and_not_between() -> None:
    regularizer, heads = SIGRegularizer(1.0, num_directions=7), randn(5, 2, 4)
    first = regularizer.directions(4)
    assert first.shape == (4, 7)
    torch.testing.assert_close(first.square().sum(0), torch.ones(7))
    one, two = regularizer(heads)[0], regularizer(heads)[0]
    assert one != two
    assert regularizer.state_dict()["_extra_state"] == 2
    assert not torch.equal(regularizer.directions(4), first)
    regularizer.eval()
    assert torch.equal(regularizer(heads)[0], regularizer(heads)[0])
    assert not torch.equal(SIGRegularizer(1.0, seed=1, num_directions=7).directions(4), first)


def test_the_penalty_is_the_statistic_along_the_directions() -> None:
    regularizer, heads = SIGRegularizer(0.5), randn(6, 2, 4)
    along = heads @ regularizer.directions(4).double()
    assert along.shape == (6, 2, 256)
    torch.testing.assert_close(regularizer(heads)[0], 0.5 * epps_pulley(along), rtol=1e-12, atol=0)


def test_nothing_is_drawn_from_the_global_generator() -> None:
    before = torch.random.get_rng_state()
    SIGRegularizer(1.0)(randn(5, 2, 4))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"epps_pulley needs heads of shape \[B, N, D\], got \[5, 2\]"):
        epps_pulley(randn(5, 2))
