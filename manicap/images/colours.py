"""Colour operations on float images [B, 3, H, W] in [0, 1], each image with its own factor.

Definitions follow torchvision's on tensors; gray is ITU-R 601 luma. Nothing is rounded to bytes in between.
"""

import torch
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)


def grayscale(images_BCHW: Tensor) -> Tensor:
    """[B, 1, H, W]: 0.299 R + 0.587 G + 0.114 B."""
    red, green, blue = images_BCHW.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).unsqueeze(1)


def adjust_brightness(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """factor x, within [0, 1]."""
    return (images_BCHW * factor_B.view(-1, 1, 1, 1)).clamp_(0, 1)


def adjust_contrast(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """factor x + (1 - factor) m, with m the mean gray of the image."""
    return _blend(images_BCHW, grayscale(images_BCHW).mean((2, 3), keepdim=True), factor_B)


def adjust_saturation(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """factor x + (1 - factor) gray(x)."""
    return _blend(images_BCHW, grayscale(images_BCHW), factor_B)


def _blend(images_BCHW: Tensor, others: Tensor, factor_B: Tensor) -> Tensor:
    return torch.lerp(others, images_BCHW, factor_B.view(-1, 1, 1, 1)).clamp_(0, 1)


def shift_hue(images_BCHW: Tensor, shift_B: Tensor) -> Tensor:
    """Rotate the hue by `shift` of the colour circle; HSV value and saturation are unchanged.

    6 h = (G - B) / d mod 6  if R is the largest,  2 + (B - R) / d  if G,  4 + (R - G) / d  if B;   d = max - min
    channel n (R 5, G 3, B 1) = max - d clamp(min(k, 4 - k), 0, 1),   k = (n + 6 h + 6 shift) mod 6
    """
    red, green, blue = images_BCHW.unbind(1)
    high, low = images_BCHW.amax(1), images_BCHW.amin(1)
    spread = high - low
    inverse = torch.where(spread > 0, spread, 1.0).reciprocal_()  # gray pixels have no hue and keep their colour
    sextant = torch.where(
        high == red,
        (green - blue) * inverse,
        torch.where(high == green, 2 + (blue - red) * inverse, 4 + (red - green) * inverse),
    )
    sextant += 6 * shift_B.view(-1, 1, 1)
    k = torch.stack([sextant + 5, sextant + 3, sextant + 1], 1).remainder_(6)
    weight = torch.minimum(k, 4 - k).clamp_(0, 1)
    return torch.addcmul(high.unsqueeze(1), weight, spread.unsqueeze(1), value=-1)


OPERATIONS = (adjust_brightness, adjust_contrast, adjust_saturation, shift_hue)


def jitter(images_BCHW: Tensor, factors_B4: Tensor, order_B4: Tensor) -> Tensor:
    """Apply the four operations with each image's own factors, in its own order.

    `order_B4[b]` lists the indices of the operations on image b, first to last; -1 means none. In each of four rounds,
    each operation handles the images that have it at that position, so every image undergoes every operation once.
    """
    images = images_BCHW.clone()
    for turn in range(4):
        for number, operation in enumerate(OPERATIONS):
            mine = (order_B4[:, turn] == number).nonzero()[:, 0]
            if len(mine):
                images[mine] = operation(images[mine], factors_B4[mine, number])
    return images
