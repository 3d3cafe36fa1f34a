"""Crop, resize, mirror and blur as pairs of matrices: each is linear and acts on rows and columns separately.

    out = R I C^T        R [out height, height], C [out width, width], one pair per view

A batch of views then takes two batched matrix products, with no loop and no gather.
"""

import math

import torch
from torch import Tensor


def apply_separable(images_BCHW: Tensor, rows_BOH: Tensor, columns_BOW: Tensor) -> Tensor:
    """R I C^T for each image and channel; leading axes broadcast."""
    return rows_BOH.unsqueeze(-3) @ images_BCHW @ columns_BOW.unsqueeze(-3).mT


def resize_matrices(start: Tensor, length: Tensor, in_size: int, out_size: int, filter_name: str) -> Tensor:
    """Weights [..., out_size, in_size] that resize the pixels start .. start + length - 1 of a line to `out_size`.

    Pillow's definition: output j weights input x by f((x + 1/2 - c_j) / s), normalised to sum to 1 over the crop,
    with c_j = start + (j + 1/2) length / out_size and s = max(1, length / out_size), so that shrinking averages.
    """
    scale = length / out_size
    centre = start[..., None] + (torch.arange(out_size, device=start.device) + 0.5) * scale[..., None]
    pixel = torch.arange(in_size, device=start.device) + 0.5
    weights = FILTERS[filter_name]((pixel - centre[..., None]) / scale.clamp(min=1)[..., None, None])
    inside = (pixel > start[..., None]) & (pixel < (start + length)[..., None])
    weights = weights * inside[..., None, :]
    return weights / weights.sum(-1, keepdim=True)


def triangle(x: Tensor) -> Tensor:
    """Bilinear interpolation: 1 - |x| on [-1, 1]."""
    return (1 - x.abs()).clamp(min=0)


def cubic(x: Tensor) -> Tensor:
    """Bicubic interpolation with a = -1/2 on [-2, 2] (Keys 1981), as in Pillow."""
    a, x = -0.5, x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


FILTERS = {"bilinear": triangle, "bicubic": cubic}


def blur_radius(size: int, fraction: float) -> int:
    """Half the width of the kernel: int(int(fraction size) / 2), as in SimCLR, and at least 1."""
    return max(int(fraction * size) // 2, 1)


def gaussian_kernels(sigma_B: Tensor, radius: int) -> Tensor:
    """[B, 2 radius + 1], proportional to exp(-x^2 / 2 sigma^2), sum 1."""
    x = torch.arange(-radius, radius + 1, device=sigma_B.device, dtype=sigma_B.dtype)
    return torch.softmax(-0.5 * (x / sigma_B[..., None]) ** 2, -1)


def convolution_matrices(kernels_BK: Tensor, size: int) -> Tensor:
    """Weights [..., size, size] of the convolution of a line with each kernel, the line mirrored at its ends."""
    radius = kernels_BK.shape[-1] // 2
    if radius >= size:
        raise ValueError(f"a kernel of {2 * radius + 1} cannot be mirrored into a line of {size} pixels")
    device = kernels_BK.device
    source = torch.arange(size, device=device) + torch.arange(-radius, radius + 1, device=device)[:, None]
    source = (size - 1) - ((size - 1) - source.abs()).abs()  # ... 2 1 | 0 1 2 ... : the edge itself is not repeated
    taps_KOS = torch.nn.functional.one_hot(source, size).to(kernels_BK.dtype)
    return (kernels_BK @ taps_KOS.flatten(1)).unflatten(-1, (size, size))


def log_uniform(uniform: Tensor, low: float, high: float) -> Tensor:
    return torch.exp(math.log(low) + uniform * (math.log(high) - math.log(low)))
