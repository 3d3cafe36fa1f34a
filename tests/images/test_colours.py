"""Colour operations against colorsys, Pillow and their formulas."""

import colorsys
from itertools import permutations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from manicap.images.colours import (
    OPERATIONS,
    adjust_brightness,
    adjust_contrast,
    adjust_saturation,
    grayscale,
    jitter,
    shift_hue,
)

BYTES = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
IMAGES = BYTES.double() / 255
FACTORS = torch.tensor([0.0, 0.4, 1.0, 1.7], dtype=torch.float64)


def test_gray_is_the_weighted_sum_of_the_channels():
    for channel, weight in enumerate((0.299, 0.587, 0.114)):
        pixel = torch.zeros(1, 3, 1, 1, dtype=torch.float64)
        pixel[0, channel] = 1
        assert grayscale(pixel).item() == weight
    white = grayscale(torch.ones(1, 3, 1, 1, dtype=torch.float64)).item()
    assert white == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("shift", [-0.5, -0.1, 0.0, 0.03, 0.2, 0.5])
def test_hue_turns_as_in_colorsys(shift):
    corners = [[r, g, b] for r in (0, 0.5, 1) for g in (0, 0.5, 1) for b in (0, 0.5, 1)]  # ties, grays, black
    pixels = torch.cat([torch.tensor(corners, dtype=torch.float64), IMAGES.permute(0, 2, 3, 1).reshape(-1, 3)])
    expected = []
    for r, g, b in pixels.tolist():
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        expected.append(colorsys.hsv_to_rgb((h + shift) % 1, s, v))
    turned = shift_hue(pixels.T[None, :, :, None], torch.tensor([shift], dtype=torch.float64))
    torch.testing.assert_close(turned[0, :, :, 0].T, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("operation", "enhance"),
    [
        (adjust_brightness, ImageEnhance.Brightness),
        (adjust_contrast, ImageEnhance.Contrast),
        (adjust_saturation, ImageEnhance.Color),
    ],
)
def test_brightness_contrast_and_saturation_are_pillows(operation, enhance):
    # Pillow rounds gray to a byte (half a level, times |1 - factor| <= 1) and cuts the result down to a byte (one).
    ours = operation(IMAGES, FACTORS) * 255
    for image, factor, result in zip(BYTES, FACTORS.tolist(), ours, strict=True):
        theirs = enhance(Image.fromarray(image.permute(1, 2, 0).numpy())).enhance(factor)
        assert np.abs(np.asarray(theirs, float) - result.permute(1, 2, 0).numpy()).max() <= 1.6


def test_factor_one_and_shift_zero_change_nothing():
    for operation in OPERATIONS[:3]:
        torch.testing.assert_close(operation(IMAGES, torch.ones(4, dtype=torch.float64)), IMAGES, rtol=0, atol=1e-15)
    torch.testing.assert_close(shift_hue(IMAGES, torch.zeros(4)), IMAGES, rtol=0, atol=2e-15)


def test_contrast_zero_is_flat_and_saturation_zero_gray():
    zeros = torch.zeros(4, dtype=torch.float64)
    flat, gray = adjust_contrast(IMAGES, zeros), adjust_saturation(IMAGES, zeros)
    assert torch.equal(flat, grayscale(IMAGES).mean((2, 3), keepdim=True).expand_as(IMAGES))
    assert torch.equal(gray, grayscale(IMAGES).expand_as(IMAGES))


def test_jitter_applies_each_images_operations_in_its_own_order():
    orders = torch.tensor([*permutations(range(4)), (-1, -1, -1, -1)])
    images = IMAGES[:1].expand(25, -1, -1, -1)
    factors = torch.rand(25, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.3
    ours = jitter(images, factors, orders)
    for number, order in enumerate(orders.tolist()):
        expected = images[number : number + 1]
        for operation in order:
            if operation >= 0:
                expected = OPERATIONS[operation](expected, factors[number : number + 1, operation])
        torch.testing.assert_close(ours[number : number + 1], expected, rtol=0, atol=1e-15)
    assert torch.equal(ours[24], IMAGES[0])
