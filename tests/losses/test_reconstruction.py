"""VAE and pixel-prediction terms: values by hand, against torch's own, gradients, errors."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from manicap.losses.reconstruction import gaussian_kl, pixel_prediction, squared_error, unexplained


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_errors_of_two_images_by_hand() -> None:
    # Differences 1 at four pixels of one image, 3 at one pixel of the other: sums 4 and 9, mean 6.5; 13 over 8 pixels.
    predicted, image = torch.zeros(2, 1, 2, 2), torch.zeros(2, 1, 2, 2)
    predicted[0] = 1
    image[1, 0, 0, 0] = 3
    assert squared_error(predicted, image).item() == 6.5
    assert pixel_prediction(predicted, image).item() == 13 / 8


def test_kl_of_the_prior_is_zero_and_of_a_shifted_unit_half_its_square() -> None:
    assert gaussian_kl(torch.zeros(3, 4), torch.zeros(3, 4)).item() == 0
    # Mean 2, variance 1, in one of two units: 2^2 / 2 = 2.
    assert gaussian_kl(torch.tensor([[2.0, 0.0]]), torch.zeros(1, 2)).item() == 2


def test_kl_equals_that_of_torch_distributions() -> None:
    mean, log_variance = randn(5, 3), randn(5, 3, seed=1)
    prior = Normal(torch.zeros(5, 3).double(), torch.ones(5, 3).double())
    expected = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), prior).sum(1).mean()
    torch.testing.assert_close(gaussian_kl(mean, log_variance), expected, rtol=1e-13, atol=0)


def test_what_a_drawing_leaves_unexplained_by_hand() -> None:
    picture = torch.tensor([[3.0, 0.0], [0.0, -4.0]])  # squares 25
    assert unexplained(torch.zeros(2, 2), picture).item() == 1
    assert unexplained(picture, picture).item() == 0
    assert unexplained(torch.tensor([[3.0, 1.0], [0.0, -2.0]]), picture).item() == pytest.approx(5 / 25)
    # As with squared_error: gradients reach the drawing, and pictures are given.
    drawn = torch.zeros(2, 2, requires_grad=True)
    unexplained(drawn, picture).backward()
    torch.testing.assert_close(drawn.grad, -2 * picture / 25)
    # Nothing to draw: the mean square of what was drawn over 1e-6, and no division by 0.
    assert unexplained(torch.full((2, 2), 1e-3), torch.zeros(2, 2)).item() == pytest.approx(1)
    with pytest.raises(ValueError, match="unexplained"):
        unexplained(torch.zeros(2, 2), torch.zeros(2, 3))


def test_order_of_pixels_changes_nothing() -> None:
    a, b = randn(2, 1, 3, 3), randn(2, 1, 3, 3, seed=1)
    torch.testing.assert_close(squared_error(a, b), squared_error(a.flip(2, 3), b.flip(2, 3)))
    torch.testing.assert_close(pixel_prediction(a, b), pixel_prediction(a.flip(2, 3), b.flip(2, 3)))


def test_gradients_are_right() -> None:
    images = (randn(2, 1, 2, 3).requires_grad_(), randn(2, 1, 2, 3, seed=1))
    assert torch.autograd.gradcheck(squared_error, images)
    assert torch.autograd.gradcheck(pixel_prediction, images)
    assert torch.autograd.gradcheck(gaussian_kl, (randn(2, 3).requires_grad_(), randn(2, 3, seed=1).requires_grad_()))


@pytest.mark.parametrize("loss", [squared_error, gaussian_kl, pixel_prediction])
def test_errors_say_what_came(loss: object) -> None:
    assert callable(loss)
    with pytest.raises(ValueError, match=r"of one shape, got \[2, 3\] and \[2, 4\]"):
        loss(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"non-empty tensors of one shape, got \[0, 3\]"):
        loss(torch.zeros(0, 3), torch.zeros(0, 3))
