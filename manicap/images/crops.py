"""Random resized crops: the boxes (Szegedy et al. 2014, arXiv 1409.4842, Section 6; limits as in torchvision)."""

from typing import NamedTuple

import torch
from torch import Tensor

from manicap.images.resampling import log_uniform

ATTEMPTS = 10
NUM_UNIFORMS = 2 * ATTEMPTS + 2
"""Random numbers per box: area and ratio of each attempt, and a position."""


class Boxes(NamedTuple):
    """Whole pixels, as float32 [...]."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


def crop_boxes(
    uniforms: Tensor, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> Boxes:
    """One box per row of `uniforms` [..., 22].

        A = height width U(scale),   r = exp U(log ratio),   w = round sqrt(A r),   h = round sqrt(A / r)

    The first of ten attempts that fits into the image is placed uniformly. If none fits, the box is centred and as
    large as the limits on the ratio allow.
    """
    area_uniform, ratio_uniform, place = uniforms.split([ATTEMPTS, ATTEMPTS, 2], -1)
    area = height * width * (scale[0] + area_uniform * (scale[1] - scale[0]))
    aspect = log_uniform(ratio_uniform, *ratio)
    widths, heights = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    fits = (widths >= 1) & (widths <= width) & (heights >= 1) & (heights <= height)
    first = fits.byte().argmax(-1, keepdim=True)
    fallback_height, fallback_width = central_size(height, width, ratio)
    any_fits = fits.any(-1)
    box_width = torch.where(any_fits, widths.gather(-1, first)[..., 0], fallback_width)
    box_height = torch.where(any_fits, heights.gather(-1, first)[..., 0], fallback_height)
    return Boxes(
        top=torch.where(any_fits, _place(place[..., 0], height - box_height), (height - fallback_height) // 2),
        left=torch.where(any_fits, _place(place[..., 1], width - box_width), (width - fallback_width) // 2),
        height=box_height,
        width=box_width,
    )


def central_size(height: int, width: int, ratio: tuple[float, float]) -> tuple[int, int]:
    """(height, width) of the largest box whose ratio is within the limits."""
    if width / height < ratio[0]:
        return round(width / ratio[0]), width
    if width / height > ratio[1]:
        return height, round(height * ratio[1])
    return height, width


def _place(uniform: Tensor, room: Tensor) -> Tensor:
    """A uniformly distributed integer from 0 to `room`; rounding may bring the product to room + 1."""
    return torch.minimum((uniform * (room + 1)).floor(), room)
