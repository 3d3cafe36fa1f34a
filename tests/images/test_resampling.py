"""Crops, resizes and blurs as matrices, against Pillow and SciPy."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import convolve1d

from manicap.images.resampling import (
    apply_separable,
    blur_radius,
    convolution_matrices,
    cubic,
    gaussian_kernels,
    resize_matrices,
)

PIXELS = torch.rand(1, 3, 40, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def scalar(value):
    return torch.tensor([float(value)], dtype=torch.float64)


@pytest.mark.parametrize(("name", "method"), [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)])
@pytest.mark.parametrize(
    ("box", "size"),
    [((0, 0, 40, 50), 32), ((3, 7, 11, 9), 32), ((5, 2, 1, 30), 16), ((0, 10, 40, 17), 40), ((1, 1, 39, 2), 7)],
    ids=["shrink", "enlarge", "one row", "own height", "both"],
)
def test_a_resized_crop_is_pillows(name, method, box, size):
    top, left, height, width = box
    rows = resize_matrices(scalar(top), scalar(height), 40, size, name)
    columns = resize_matrices(scalar(left), scalar(width), 50, size, name)
    ours = apply_separable(PIXELS, rows, columns)[0]
    for channel, plane in zip(ours, PIXELS[0].numpy(), strict=True):
        crop = Image.fromarray(plane.astype(np.float32)[top : top + height, left : left + width])
        expected = np.asarray(crop.resize((size, size), method))
        np.testing.assert_allclose(channel.numpy(), expected, rtol=0, atol=1e-6)  # Pillow stores float32


def test_the_whole_image_at_its_own_size_is_itself():
    rows = resize_matrices(scalar(0), scalar(40), 40, 40, "bicubic")
    assert torch.equal(rows[0], torch.eye(40, dtype=torch.float64))


def test_weights_sum_to_one_and_stay_in_the_crop():
    weights = resize_matrices(scalar(5), scalar(6), 32, 32, "bilinear")[0]
    torch.testing.assert_close(weights.sum(-1), torch.ones(32, dtype=torch.float64), rtol=0, atol=1e-15)
    assert not weights[:, :5].any()
    assert not weights[:, 11:].any()


def test_the_cubic_filter_interpolates():
    # 1 at 0, 0 at every other whole number, and at 1/2: (1.5/2 - 2.5)/4 + 1 = 0.5625.
    values = cubic(torch.tensor([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0], dtype=torch.float64))
    torch.testing.assert_close(
        values, torch.tensor([0, 0, 1, 0.5625, 0, 0, 0], dtype=torch.float64), rtol=0, atol=1e-15
    )


def test_kernels_are_gaussian_and_sum_to_one():
    sigma = torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)
    kernels = gaussian_kernels(sigma, 4)
    torch.testing.assert_close(kernels.sum(-1), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-15)
    # The weight at x over that at 0 is exp(-x^2 / 2 sigma^2): at x = 1, sigma = 2 it is exp(-1/8).
    assert (kernels[2, 5] / kernels[2, 4]).item() == pytest.approx(np.exp(-1 / 8), rel=1e-14)
    assert torch.equal(kernels, kernels.flip(-1))


def test_convolution_mirrors_at_the_ends():
    kernels = torch.tensor([[0.5, 0.3, 0.2, 0.1, 0.4]], dtype=torch.float64)
    line = PIXELS[0, 0, 0]
    expected = convolve1d(line.numpy(), kernels[0].flip(0).numpy(), mode="mirror")
    ours = convolution_matrices(kernels, 50)[0] @ line
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-14)


def test_the_width_of_the_blur_is_a_tenth_of_the_image():
    # SimCLR: kernels of 22 // 2 * 2 + 1 = 23 for 224 pixels, 9 for 96, 3 for 32; small images still blur.
    assert [2 * blur_radius(size, 0.1) + 1 for size in (224, 96, 32, 8)] == [23, 9, 3, 3]


def test_a_kernel_wider_than_the_image_is_refused():
    with pytest.raises(ValueError, match="a kernel of 9 cannot be mirrored into a line of 4 pixels"):
        convolution_matrices(gaussian_kernels(torch.ones(1), 4), 4)
