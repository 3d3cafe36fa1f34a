"""Random views of a batch of images: one call, on the images' device, from one generator.

    generator = torch.Generator().manual_seed(stream_seed(seed, "views", step))
    views = make_views(images, CIFAR10_TSAI2021, num_views=2, generator=generator)     # float32 [B, 2, 3, 32, 32]

All random numbers of a batch are drawn at once, image by image: 35 per view, whatever the recipe. A view depends on the
generator, its image and the image's position in the batch, not on the other images.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from manicap.images.colours import grayscale, jitter
from manicap.images.crops import NUM_UNIFORMS, crop_boxes
from manicap.images.recipes import Recipe
from manicap.images.resampling import (
    apply_separable,
    blur_radius,
    convolution_matrices,
    gaussian_kernels,
    resize_matrices,
)

_PARTS = {"crop": NUM_UNIFORMS, "flip": 1, "jitter": 1, "factors": 4, "order": 4, "grayscale": 1, "blur": 1, "sigma": 1}


def make_views(
    images_BCHW: Tensor,
    recipe: Recipe,
    num_views: int,
    generator: torch.Generator,
    *,
    first: int = 0,
    global_batch: int | None = None,
) -> Tensor:
    """float32 views [B, T, 3, H, W] in [0, 1] of uint8 images [B, 3, H, W].

    A process that holds the images first .. first + B - 1 of a batch of `global_batch` gets the views that one process
    with the whole batch and the same generator would make of them.
    """
    _check_images(images_BCHW)
    B = len(images_BCHW)
    total = B if global_batch is None else global_batch
    if not 0 <= first <= total - B:
        raise ValueError(f"images {first} to {first + B - 1} are not within a global batch of {total}")
    draws = torch.rand((total, num_views, sum(_PARTS.values())), generator=generator, device=generator.device)
    draws = draws[first : first + B].to(images_BCHW.device)
    uniforms = {
        name: part.flatten(0, 1) for name, part in zip(_PARTS, draws.split(list(_PARTS.values()), -1), strict=True)
    }
    images = to_float(images_BCHW).repeat_interleave(num_views, 0)
    if recipe.colour_first:
        views = _crop(_colour(images, recipe, uniforms), recipe, uniforms)
    else:
        views = _colour(_crop(images, recipe, uniforms), recipe, uniforms)
    views = _blur(views, recipe, uniforms)
    return views.clamp_(0, 1).unflatten(0, (B, num_views))  # bicubic overshoots


def evaluation_view(images_BCHW: Tensor, recipe: Recipe) -> Tensor:
    """float32 [B, 3, H, W] in [0, 1], without randomness: the image, or its centre if the recipe says so."""
    _check_images(images_BCHW)
    images = to_float(images_BCHW)
    if recipe.evaluated_size is None:
        return images
    resized = recipe.evaluation_resize or recipe.evaluated_size
    margin = (resized - recipe.evaluated_size + 1) // 2
    matrices = []
    for size in images.shape[-2:]:
        start, length = torch.zeros((), device=images.device), torch.tensor(float(size), device=images.device)
        whole = resize_matrices(start, length, size, resized, recipe.interpolation)
        matrices.append(whole[margin : margin + recipe.evaluated_size])
    return apply_separable(images, *matrices).clamp_(0, 1)


def to_float(images: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]."""
    return images.float().div_(255)


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(x - mean) / std per channel, for images or views [..., C, H, W]."""
    mean_C11 = torch.tensor(mean, device=images.device).view(-1, 1, 1)
    std_C11 = torch.tensor(std, device=images.device).view(-1, 1, 1)
    return (images - mean_C11) / std_C11


def _check_images(images_BCHW: Tensor) -> None:
    if images_BCHW.dtype != torch.uint8 or images_BCHW.ndim != 4 or images_BCHW.shape[1] != 3:
        raise ValueError(
            f"images must be uint8 [B, 3, H, W], got {images_BCHW.dtype} of shape {tuple(images_BCHW.shape)}"
        )


def _crop(images_BCHW: Tensor, recipe: Recipe, uniforms: dict[str, Tensor]) -> Tensor:
    """Random resized crop, combined with mirroring: the matrix's columns reversed."""
    height, width = images_BCHW.shape[-2:]
    out_height, out_width = (recipe.output_size or height), (recipe.output_size or width)
    boxes = crop_boxes(uniforms["crop"], height, width, recipe.crop_scale, recipe.crop_ratio)
    rows = resize_matrices(boxes.top, boxes.height, height, out_height, recipe.interpolation)
    columns = resize_matrices(boxes.left, boxes.width, width, out_width, recipe.interpolation)
    flipped = uniforms["flip"].unsqueeze(-1) < recipe.flip_probability
    return apply_separable(images_BCHW, rows, torch.where(flipped, columns.flip(-2), columns))


def _colour(images_BCHW: Tensor, recipe: Recipe, uniforms: dict[str, Tensor]) -> Tensor:
    if recipe.jitter_probability > 0:
        order = uniforms["order"].argsort(-1)  # four uniform keys: each of the 24 orders equally likely
        order = torch.where(uniforms["jitter"] < recipe.jitter_probability, order, -1)
        images_BCHW = jitter(images_BCHW, jitter_factors(uniforms["factors"], recipe), order)
    if recipe.grayscale_probability > 0:
        gray = uniforms["grayscale"][..., None, None] < recipe.grayscale_probability
        images_BCHW = torch.where(gray, grayscale(images_BCHW), images_BCHW)
    return images_BCHW


def jitter_factors(uniforms_B4: Tensor, recipe: Recipe) -> Tensor:
    """Factors of brightness, contrast and saturation, and the shift of hue, from numbers uniform in [0, 1)."""
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation)
    low = uniforms_B4.new_tensor([*(max(0.0, 1 - strength) for strength in strengths), -recipe.hue])
    high = uniforms_B4.new_tensor([*(1 + strength for strength in strengths), recipe.hue])
    return torch.lerp(low, high, uniforms_B4)


def _blur(images_BCHW: Tensor, recipe: Recipe, uniforms: dict[str, Tensor]) -> Tensor:
    """Gaussian blur of the images selected for it; the others are unchanged."""
    if recipe.blur_probability == 0:
        return images_BCHW
    due = (uniforms["blur"][:, 0] < recipe.blur_probability).nonzero()[:, 0]
    low, high = recipe.blur_sigma
    sigma = low + uniforms["sigma"][due, 0] * (high - low)
    height, width = images_BCHW.shape[-2:]
    kernels = gaussian_kernels(sigma, blur_radius(height, recipe.blur_fraction))
    rows, columns = convolution_matrices(kernels, height), convolution_matrices(kernels, width)
    return images_BCHW.index_copy(0, due, apply_separable(images_BCHW[due], rows, columns))
