"""Floors without a network: the pixels themselves, reduced to a few hundred numbers by a random or a principal map."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from manicap.core.seeding import numpy_generator
from manicap.play.store import PlayStore, Rows
from manicap.play.views import GRAY, View
from manicap.probing.encoders import FrameEncoder

PIXELS = "pixels"
"""The name that stands for both floors."""
PIXEL_WIDTH = 256
COMPONENT_FRAMES = 512
"""Training frames from which principal components are computed."""


MOST_PIXELS = 2**19
"""Of a frame or a stack; of a larger stack the last frames are taken."""


class PixelMap(nn.Module):
    """The last channels of frames uint8 [B, C, H, W] to (frames / 255 - mean) times a map [P, k]."""

    mean_P: Tensor
    map_PK: Tensor

    def __init__(self, mean_P: Tensor, map_PK: Tensor, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.register_buffer("mean_P", mean_P)
        self.register_buffer("map_PK", map_PK)
        self.eval()

    def forward(self, frames: Tensor) -> Tensor:
        return (frames[:, -self.channels :].flatten(1).float() / 255 - self.mean_P) @ self.map_PK


def pixel_floors(
    store: PlayStore, train_rows: Rows, width: int | None, seed: int, view: View = GRAY
) -> Mapping[str, FrameEncoder]:
    """Random projections and principal components of the pixels, at most `width` of them."""
    some = numpy_generator(seed, "pixels").permutation(len(train_rows))[:COMPONENT_FRAMES]
    single = math.prod(replace(view, stack=1).shape)
    last = replace(view, stack=min(view.stack, max(1, MOST_PIXELS // single)))
    frames = torch.from_numpy(last.read(store, np.sort(train_rows[some]))).flatten(1).float() / 255
    mean = frames.mean(0)
    width = min(PIXEL_WIDTH, width or PIXEL_WIDTH, len(frames) - 1)
    drawn = numpy_generator(seed, "pixel projection").standard_normal((frames.shape[1], width), np.float32)
    maps = {
        "pixels, random": torch.from_numpy(drawn) / frames.shape[1] ** 0.5,
        "pixels, principal": _components(frames - mean, width),
    }
    return {name: FrameEncoder(PixelMap(mean, found, last.shape[0])) for name, found in maps.items()}


def _components(centred: Tensor, width: int) -> Tensor:
    """Principal directions [P, k] of frames [n, P], fewer than pixels: from the frames' Gram matrix."""
    variances, left = torch.linalg.eigh((centred @ centred.T).double())
    variances, left = variances[-width:].clamp_min(1e-9), left[:, -width:]
    return (centred.T @ (left / variances.sqrt()).float()).flip(1)
