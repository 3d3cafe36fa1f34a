"""Methods on images small enough to train in a test, and a batch of views for them."""

from dataclasses import replace

import torch

from manicap.algorithms import METHODS
from manicap.algorithms.base import Batch, MethodContext

CONTEXT = MethodContext((3, 16, 16), mean=(0.49, 0.48, 0.45), std=(0.25, 0.24, 0.26))


def small_image_settings(name, **changes):
    """ResNet-18 of width 8, heads of 8 units; two of them where the method's default has several."""
    default = METHODS[name].settings_type()
    values = {"encoder": "resnet18", "encoder_width": 8, "units": 8, "hidden_units": 8}
    if getattr(default, "num_heads", 1) > 1:
        values |= {"num_heads": 2}
    if getattr(default, "epsilon", 0) > 0:
        values |= {"epsilon": 0.01}
    if hasattr(default, "predictor_units"):
        values |= {"predictor_units": 4}
    return replace(default, **values | changes)


def build_small(name, seed=0, **changes):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return METHODS[name](small_image_settings(name, **changes), CONTEXT)


def make_views(method, size=8, seed=0):
    """Views of as many smooth random images: shifted by a pixel or two and dimmed, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(size, 3, 4, 4, generator=generator)
    images = torch.nn.functional.interpolate(coarse, size=(16, 16), mode="bilinear")
    views = [
        images.roll(t, dims=3) * (1 + 0.2 * t) + 0.1 * torch.randn(images.shape, generator=generator)
        for t in range(method.frames_per_sample)
    ]
    return Batch(torch.stack(views, 1), None, torch.Generator().manual_seed(seed))


IMAGE_C_PLUS = [name for name, method in METHODS.items() if method.kind == "views" and name.endswith("-c+")]
