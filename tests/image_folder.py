"""A small folder of images that can be told apart: stripes of four directions and colours, under noise."""

import numpy as np

from manicap.domains.images.config import ImageConfig
from manicap.report.png import encode_colour_png
from tests.algorithms.small_images import small_image_settings

CLASSES = ("across", "down", "falling", "rising")
SIZE = 16


def write_image_folder(directory, num_train=24, num_test=8):
    """`num_train` and `num_test` images of 16 x 16 a class."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:SIZE, :SIZE]
    phases = dict(zip(CLASSES, (row, column, row + column, row - column), strict=True))
    for split, count in (("train", num_train), ("test", num_test)):
        for number, (name, phase) in enumerate(phases.items()):
            folder = directory / split / name
            folder.mkdir(parents=True)
            for index in range(count):
                stripes = 127 + 80 * np.sin(phase * 1.2 + rng.uniform(0, 6.28))
                image = stripes + rng.normal(0, 25, (3, SIZE, SIZE))
                image[number % 3] += 40
                pixels = image.clip(0, 255).astype(np.uint8)
                (folder / f"{index:03d}.png").write_bytes(encode_colour_png(pixels))
    return directory


def small_image_config(folder, method="simclr-c+", **changes):
    """Two epochs of 6 steps of 16 images."""
    values = {"dataset": str(folder), "method": method, "batch_size": 16, "max_epochs": 2}
    return ImageConfig(**values | {"settings": small_image_settings(method, encoder_width=8)} | changes)
