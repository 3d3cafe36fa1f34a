"""Boxes of random resized crops, against the definition written as a loop over boxes and attempts."""

import math
import random

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, ks_2samp, kstest

from manicap.images.crops import NUM_UNIFORMS, central_size, crop_boxes

SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)


def literal_box(draw, height, width, scale, ratio):
    """(top, left, height, width) of one box, as the definition reads."""
    for _ in range(10):
        area = draw.uniform(*scale) * height * width
        aspect = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, height - h), draw.randint(0, width - w), h, w
    w, h = width, height
    if width / height < ratio[0]:
        h = round(width / ratio[0])
    elif width / height > ratio[1]:
        w = round(height * ratio[1])
    return (height - h) // 2, (width - w) // 2, h, w


def both(height, width, scale=SCALE, ratio=RATIO, count=20_000):
    draw = random.Random(0)
    slow = np.array([literal_box(draw, height, width, scale, ratio) for _ in range(count)])
    uniforms = torch.rand(count, NUM_UNIFORMS, generator=torch.Generator().manual_seed(0))
    return torch.stack(crop_boxes(uniforms, height, width, scale, ratio), -1).double().numpy(), slow


@pytest.mark.parametrize(("height", "width"), [(32, 32), (96, 96), (480, 640)])
@pytest.mark.parametrize("scale", [SCALE, (0.2, 1.0)])
def test_areas_ratios_and_places_are_distributed_as_defined(height, width, scale):
    ours, slow = both(height, width, scale)
    quantities = {
        "area": lambda box: box[:, 2] * box[:, 3],
        "ratio": lambda box: box[:, 3] / box[:, 2],
        "top": lambda box: box[:, 0],
        "left": lambda box: box[:, 1],
        "right": lambda box: box[:, 1] + box[:, 3],
    }
    for name, quantity in quantities.items():
        assert ks_2samp(quantity(ours), quantity(slow)).pvalue > 0.01, name


def test_where_every_attempt_fits_area_is_uniform_and_ratio_log_uniform():
    # At most half the area of a square: sides up to sqrt(1/2 * 4/3) < 1, so no attempt is refused. In an image of
    # 4000 x 4000 rounding to pixels is far below the resolution of 20,000 samples.
    ours, _ = both(4000, 4000, scale=(0.1, 0.5), count=20_000)
    area, ratio = ours[:, 2] * ours[:, 3] / 4000**2, ours[:, 3] / ours[:, 2]
    assert kstest(area, "uniform", args=(0.1, 0.4)).pvalue > 0.01
    assert kstest(np.log(ratio), "uniform", args=(math.log(3 / 4), 2 * math.log(4 / 3))).pvalue > 0.01


def test_boxes_lie_inside_and_are_whole():
    ours, _ = both(32, 48)
    assert (ours == ours.round()).all()
    assert (ours[:, :2] >= 0).all()
    assert (ours[:, 2:] >= 1).all()
    assert (ours[:, 0] + ours[:, 2]).max() == 32
    assert (ours[:, 1] + ours[:, 3]).max() == 48


def test_every_place_of_a_small_box_is_equally_likely():
    # A quarter of a 4 x 4 image at ratio 1 is a 2 x 2 box: rows 0, 1, 2.
    ours, _ = both(4, 4, scale=(0.25, 0.25), ratio=(1.0, 1.0))
    assert (ours[:, 2:] == 2).all()
    assert chisquare(np.bincount(ours[:, 0].astype(int), minlength=3)).pvalue > 0.01


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    # The whole area never fits at these ratios. Wide: height 10, width round(10 * 4/3) = 13, left (100 - 13) // 2 = 43.
    [(10, 100, (0, 43, 10, 13)), (100, 10, (43, 0, 13, 10))],
)
def test_where_nothing_fits_the_box_is_central(height, width, expected):
    ours, slow = both(height, width, scale=(1.0, 1.0), count=50)
    assert (ours == expected).all()
    assert (slow == expected).all()


def test_an_image_within_the_limits_falls_back_to_itself():
    assert central_size(32, 40, RATIO) == (32, 40)


def test_random_numbers_at_the_end_of_their_range_stay_inside():
    almost_one = torch.full((1, NUM_UNIFORMS), 1 - 2**-24)
    top, left, height, width = crop_boxes(almost_one, 32, 32, (0.25, 0.25), (1.0, 1.0))
    assert (top + height, left + width) == (32, 32)
