"""Pictures that are drawn from features, by NumPy."""

import numpy as np
import pytest
import torch

from manicap.nn.pixels import LinearPixels


@pytest.mark.parametrize(
    ("size", "cell"),
    [
        ((1, 210, 160), (5, 4)),
        ((3, 48, 64), (2, 2)),
        ((2, 83, 84), (2, 3)),
        ((1, 84, 80), (2, 2)),
        ((1, 85, 81), (3, 3)),
        ((1, 42, 40), (1, 1)),
        ((1, 41, 39), (1, 1)),
    ],
)
def test_cells_are_the_smallest_of_which_at_most_42_rows_and_40_columns_fit(size, cell):
    rng = np.random.default_rng(0)
    channels, height, width = size
    frames = rng.integers(0, 256, (3, *size), np.uint8)
    mean, deviation = rng.random(size, np.float32), 0.3 * rng.random(size, np.float32)
    pixels = LinearPixels(5, size)
    pixels.set_statistics(torch.from_numpy(mean), torch.from_numpy(deviation))
    rows, columns = height // cell[0], width // cell[1]
    normalised = (frames / 255 - mean) / np.maximum(deviation, 0.1)
    whole = normalised[:, :, : rows * cell[0], : columns * cell[1]]
    expected = whole.reshape(3, channels, rows, cell[0], columns, cell[1]).mean((3, 5)).reshape(3, -1)
    np.testing.assert_allclose(pixels.picture(torch.from_numpy(frames)), expected, rtol=1e-4, atol=1e-4)
    as_floats = pixels.picture(torch.from_numpy(frames.astype(np.float32) / 255))
    np.testing.assert_allclose(as_floats, expected, rtol=1e-4, atol=1e-4)
    assert pixels(torch.ones(3, 5)).shape == expected.shape
    assert rows <= 42
    assert columns <= 40


def test_it_draws_nothing_at_first_and_then_a_linear_map():
    pixels = LinearPixels(5, (1, 50, 50))
    assert not pixels(torch.ones(2, 5)).any()
    with torch.no_grad():
        pixels.weight.fill_(0.5)
        pixels.bias.fill_(-1)
    torch.testing.assert_close(pixels(torch.ones(2, 5)), torch.full((2, 25 * 25), 1.5))


def test_without_statistics_pixels_are_divided_by_255():
    frames = torch.full((1, 1, 40, 40), 51, dtype=torch.uint8)
    torch.testing.assert_close(LinearPixels(5, (1, 40, 40)).picture(frames), torch.full((1, 1600), 0.2))
