"""Reconstruction and prediction of pixels: the terms of the VAE and pixel-prediction baselines.

Sums over pixels or latent units are float32 even under autocast: bfloat16 has 8 bits, and the terms of the divergence
nearly cancel.
"""

import torch
from torch import Tensor

from manicap.losses.gather import mean_over_processes
from manicap.losses.pairs import in_float32

EMPTY = 1e-6
"""Mean square below which a picture counts as empty."""


def squared_error(predicted_BCHW: Tensor, image_BCHW: Tensor) -> Tensor:
    """Squared error summed over an image's pixels, mean over the batch (the VAE of arXiv 1906.08226).

        L = mean_b sum_chw (x^ - x)^2

    This is a Gaussian likelihood with variance 1/2. Deviations: the mean over the batch, where the 2019 code sums; with
    Adam the scale of the whole loss makes almost no difference.
    """
    _require_same_shape("squared_error", predicted_BCHW, image_BCHW)
    with torch.autocast(predicted_BCHW.device.type, enabled=False):
        return (in_float32(predicted_BCHW) - in_float32(image_BCHW)).square().flatten(1).sum(1).mean()


def unexplained(drawn_BP: Tensor, picture_BP: Tensor) -> Tensor:
    """The share of pictures that a drawing leaves unexplained, 1 for a drawing of zeros.

    L = sum_bp (drawn - picture)^2 / sum_bp picture^2        sums over the samples of all processes
    """
    _require_same_shape("unexplained", drawn_BP, picture_BP)
    with torch.autocast(drawn_BP.device.type, enabled=False):
        picture_BP = in_float32(picture_BP)
        total = mean_over_processes(picture_BP.square().sum().detach())
        return (in_float32(drawn_BP) - picture_BP).square().sum() / total.clamp_min(EMPTY * picture_BP.numel())


def gaussian_kl(mean_BD: Tensor, log_variance_BD: Tensor) -> Tensor:
    """KL divergence of N(mean, variance) from N(0, 1), summed over units, mean over the batch (arXiv 1312.6114, B).

        L = -1/2 mean_b sum_d (1 + log s^2 - m^2 - s^2)

    Deviations: none.
    """
    _require_same_shape("gaussian_kl", mean_BD, log_variance_BD)
    with torch.autocast(mean_BD.device.type, enabled=False):
        mean_BD, log_variance_BD = in_float32(mean_BD), in_float32(log_variance_BD)
        return -0.5 * (1 + log_variance_BD - mean_BD.square() - log_variance_BD.exp()).flatten(1).sum(1).mean()


def pixel_prediction(predicted_BCHW: Tensor, next_image_BCHW: Tensor) -> Tensor:
    """Mean squared error of the next frame's pixels (the pixel-prediction baseline of arXiv 1906.08226).

        L = mean over b, c, h, w of (x^_{t+1} - x_{t+1})^2

    Deviations: none.
    """
    _require_same_shape("pixel_prediction", predicted_BCHW, next_image_BCHW)
    with torch.autocast(predicted_BCHW.device.type, enabled=False):
        return (in_float32(predicted_BCHW) - in_float32(next_image_BCHW)).square().mean()


def _require_same_shape(loss: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape or a.numel() == 0:
        raise ValueError(f"{loss} needs two non-empty tensors of one shape, got {list(a.shape)} and {list(b.shape)}")
