"""Views as a whole: distributions, seeds, independence of the batch, recipes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import binomtest, kstest

from manicap.core.config import check_config, from_dict, to_dict
from manicap.core.errors import UserError
from manicap.images.recipes import CIFAR10_TSAI2021, RECIPES, SIMCLR, STL10_TSAI2021, Recipe
from manicap.images.views import evaluation_view, jitter_factors, make_views, normalise, to_float

PLAIN = Recipe(
    crop_scale=(1.0, 1.0), crop_ratio=(1.0, 1.0), flip_probability=0, jitter_probability=0, grayscale_probability=0
)
"""Nothing happens to an image; tests switch on one thing each."""


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count=8, size=32, seed=1):
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=seeded(seed))


def is_probability(happened, probability):
    return binomtest(int(happened.sum()), happened.numel(), probability).pvalue > 0.01


def test_a_recipe_of_nothing_returns_the_images():
    batch = images()
    views = make_views(batch, PLAIN, 3, seeded())
    assert views.shape == (8, 3, 3, 32, 32)
    assert torch.equal(views, to_float(batch)[:, None].expand(-1, 3, -1, -1, -1))


@pytest.mark.parametrize("name", RECIPES)
def test_views_are_float_in_range_and_differ(name):
    batch = images(4, 96)
    views = make_views(batch, RECIPES[name], 2, seeded())
    size = RECIPES[name].output_size or 96
    assert views.shape == (4, 2, 3, size, size)
    assert views.dtype == torch.float32
    assert 0 <= views.min() < views.max() <= 1
    assert not torch.equal(views[:, 0], views[:, 1])


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_seed_gives_the_same_bytes_whatever_the_global_generator_does(name):
    batch = images(6)
    torch.rand(3)
    first = make_views(batch, RECIPES[name], 2, seeded(5))
    state = torch.get_rng_state()
    second = make_views(batch, RECIPES[name], 2, seeded(5))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)
    assert not torch.equal(first, make_views(batch, RECIPES[name], 2, seeded(6)))


@pytest.mark.parametrize("name", RECIPES)
def test_views_of_an_image_do_not_depend_on_the_other_images(name):
    batch, others = images(6), images(6, seed=2)
    others[3] = batch[3]
    ours, theirs = (make_views(each, RECIPES[name], 2, seeded()) for each in (batch, others))
    torch.testing.assert_close(ours[3], theirs[3], rtol=0, atol=1e-6)
    assert not torch.allclose(ours[2], theirs[2])


@pytest.mark.parametrize("name", RECIPES)
def test_shares_of_a_batch_get_the_views_of_the_whole(name):
    batch = images(6)
    whole = make_views(batch, RECIPES[name], 2, seeded())
    for first in (0, 3):
        share = make_views(batch[first : first + 3], RECIPES[name], 2, seeded(), first=first, global_batch=6)
        torch.testing.assert_close(share, whole[first : first + 3], rtol=0, atol=1e-6)


def test_half_of_the_views_are_mirrored():
    batch = images(1).expand(2000, -1, -1, -1)
    views = make_views(batch, replace(PLAIN, flip_probability=0.5), 1, seeded())[:, 0]
    plain = to_float(batch[0])
    mirrored = (views == plain.flip(-1)).flatten(1).all(1)
    assert ((views == plain).flatten(1).all(1) ^ mirrored).all()
    assert is_probability(mirrored, 0.5)


def test_a_fifth_of_the_views_are_gray():
    views = make_views(images(1).expand(2000, -1, -1, -1), replace(PLAIN, grayscale_probability=0.2), 1, seeded())[:, 0]
    gray = (views[:, 0] == views[:, 1]).flatten(1).all(1)
    assert is_probability(gray, 0.2)


def test_jitter_happens_with_its_probability_in_its_range():
    # A gray image changes in brightness alone when contrast, saturation and hue are off: the view over the image is
    # the factor. 0.4 * 1.4 < 1, so nothing is cut off.
    batch = torch.full((4000, 3, 2, 2), 102, dtype=torch.uint8)
    recipe = replace(PLAIN, jitter_probability=0.8, brightness=0.4, contrast=0, saturation=0, hue=0)
    factor = make_views(batch, recipe, 1, seeded())[:, 0, 0, 0, 0] / 0.4
    changed = (factor - 1).abs() > 1e-6
    assert is_probability(changed, 0.8)
    assert kstest(factor[changed].numpy(), "uniform", args=(0.6, 0.8)).pvalue > 0.01


def test_factors_are_uniform_between_their_limits():
    # [max(0, 1 - b), 1 + b] and [-h, h]; a strength of 1.5 reaches down to 0 and up to 2.5.
    recipe = Recipe(brightness=0.4, contrast=0.8, saturation=1.5, hue=0.1)
    factors = jitter_factors(torch.rand(5000, 4, generator=seeded()), recipe).numpy()
    for column, (low, high) in enumerate([(0.6, 1.4), (0.2, 1.8), (0.0, 2.5), (-0.1, 0.1)]):
        assert kstest(factors[:, column], "uniform", args=(low, high - low)).pvalue > 0.01
    ends = jitter_factors(torch.tensor([[0.0] * 4, [1.0] * 4]), recipe)
    torch.testing.assert_close(ends, torch.tensor([[0.6, 0.2, 0.0, -0.1], [1.4, 1.8, 2.5, 0.1]]), rtol=1e-7, atol=0)


def test_blur_spreads_a_point_with_a_uniform_width():
    # A white point blurred with kernel (b, a, b), a + 2b = 1: the centre has a^2, the pixel beside it ab, so that
    # b / a = exp(-1 / 2 sigma^2) gives sigma back.
    batch = torch.zeros(3000, 3, 8, 8, dtype=torch.uint8)
    batch[:, :, 4, 4] = 255
    recipe = replace(PLAIN, blur_probability=0.5, blur_sigma=(0.5, 2.0))
    views = make_views(batch, recipe, 1, seeded())[:, 0]
    torch.testing.assert_close(views.sum((2, 3)), torch.ones(3000, 3), rtol=0, atol=1e-6)
    blurred = views[:, 0, 4, 4] < 1
    assert is_probability(blurred, 0.5)
    ratio = (views[blurred, 0, 4, 5] / views[blurred, 0, 4, 4]).double()
    sigma = (-0.5 / ratio.log()).sqrt()
    assert kstest(sigma.numpy(), "uniform", args=(0.5, 1.5)).pvalue > 0.01


def test_colour_first_takes_the_contrast_of_the_whole_image():
    # Left half black, right half white. A crop of one half alone has no contrast of its own and stays as it is. Colour
    # first, the mean gray is 1/2, and such a crop is |v - 1/2| = factor / 2 for a factor below 1, uniform in [0, 1].
    batch = torch.zeros(4000, 3, 8, 8, dtype=torch.uint8)
    batch[..., 4:] = 255
    recipe = Recipe(crop_scale=(0.05, 0.1), jitter_probability=1, brightness=0, saturation=0, hue=0, contrast=1)
    after = make_views(batch, recipe, 1, seeded()).flatten(1)
    before = make_views(batch, replace(recipe, colour_first=True), 1, seeded()).flatten(1)  # of the same crops
    black = after.amax(1) == 0
    assert 0.3 < black.float().mean() < 0.5
    factor = 1 - 2 * before[black, 0]
    assert kstest(factor[factor < 1].numpy(), "uniform").pvalue > 0.01
    assert is_probability(factor < 1, 0.5)


def test_evaluation_takes_the_centre_of_the_resized_image():
    batch = images(2, 96)
    ours = evaluation_view(batch, STL10_TSAI2021)
    assert ours.shape == (2, 3, 64, 64)
    for plane, expected in zip(ours.flatten(0, 1), batch.flatten(0, 1), strict=True):
        resized = Image.fromarray(expected.numpy().astype(np.float32) / 255).resize((70, 70), Image.BICUBIC)
        np.testing.assert_allclose(plane, np.asarray(resized)[3:67, 3:67].clip(0, 1), rtol=0, atol=4e-6)
    assert torch.equal(evaluation_view(batch, SIMCLR), to_float(batch))


@pytest.mark.parametrize("side", [24, 32, 40])
def test_what_is_evaluated_may_have_another_side_than_the_views(side):
    batch, recipe = images(2, 32), Recipe(output_size=16, evaluation_size=side)
    ours = evaluation_view(batch, recipe)
    assert make_views(batch, recipe, 2, seeded()).shape == (2, 2, 3, 16, 16)
    for plane, expected in zip(ours.flatten(0, 1), batch.flatten(0, 1), strict=True):
        resized = Image.fromarray(expected.numpy().astype(np.float32) / 255).resize((side, side), Image.BILINEAR)
        np.testing.assert_allclose(plane, np.asarray(resized), rtol=0, atol=4e-6)


def test_normalised_images_have_the_given_mean_and_deviation():
    views = make_views(images(), PLAIN, 2, seeded())
    normal = normalise(views, views.mean((0, 1, 3, 4)).tolist(), views.std((0, 1, 3, 4)).tolist())
    torch.testing.assert_close(normal.mean((0, 1, 3, 4)), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(normal.std((0, 1, 3, 4)), torch.ones(3), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "wrong", [torch.zeros(2, 3, 4, 4), torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(3, 4, 4).byte()]
)
def test_other_than_uint8_images_of_three_channels_are_refused(wrong):
    with pytest.raises(ValueError, match=r"images must be uint8 \[B, 3, H, W\], got"):
        make_views(wrong, CIFAR10_TSAI2021, 2, seeded())


def test_a_share_outside_its_batch_is_refused():
    with pytest.raises(ValueError, match="images 4 to 7 are not within a global batch of 6"):
        make_views(images(4), PLAIN, 2, seeded(), first=4, global_batch=6)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_recipes_are_sound_and_survive_a_dict(recipe):
    check_config(recipe)
    assert from_dict(Recipe, to_dict(recipe)) == recipe


def test_all_problems_of_a_recipe_are_told_together():
    with pytest.raises(UserError) as error:
        check_config(Recipe(crop_scale=(0.5, 1.5), flip_probability=2, hue=0.6, contrast=-1, evaluation_resize=70))
    for name in ("crop_scale", "flip_probability", "hue", "contrast", "evaluation_resize"):
        assert name in str(error.value)
