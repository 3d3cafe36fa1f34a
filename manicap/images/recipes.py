"""Recipes: which random views a method learns from, as data."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """A distribution over views. The order is crop, flip, jitter, grayscale, blur, unless `colour_first`."""

    crop_scale: tuple[float, float] = (0.08, 1.0)
    """Area of the crop over that of the image, uniform in this range."""
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Width over height of the crop, log-uniform in this range."""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """How a crop is resized: Pillow's filters, which average where they shrink."""
    flip_probability: float = 0.5
    """Of mirroring left and right."""
    jitter_probability: float = 0.8
    """Of changing brightness, contrast, saturation and hue, in one of the 24 orders."""
    brightness: float = 0.4
    """The factor is uniform in [max(0, 1 - brightness), 1 + brightness]; likewise contrast and saturation."""
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    """The shift is uniform in [-hue, hue], as a fraction of the colour circle."""
    grayscale_probability: float = 0.2
    blur_probability: float = 0.0
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    """Standard deviation of the Gaussian in pixels, uniform in this range."""
    blur_fraction: float = 0.1
    """Width of the Gaussian's kernel over the height of the image."""
    output_size: int | None = None
    """Side of a view in pixels; by default that of the image."""
    evaluation_resize: int | None = None
    """Side to which a whole image is resized before its centre is cut out for evaluation; by default `output_size`."""
    colour_first: bool = False
    """Jitter and grayscale the whole image, and crop it afterwards."""

    def problems(self) -> list[str]:
        found = []
        for name, low, high in (("crop_scale", 0.0, 1.0), ("crop_ratio", 0.0, None), ("blur_sigma", 0.0, None)):
            values = getattr(self, name)
            if len(values) != 2 or not low < values[0] <= values[1] or (high is not None and values[1] > high):
                limits = f"0 < low <= high{'' if high is None else f' <= {high:g}'}"
                found.append(f"{name} must be (low, high) with {limits}, got {values}")
        for name in ("flip", "jitter", "grayscale", "blur"):
            probability = getattr(self, f"{name}_probability")
            if not 0 <= probability <= 1:
                found.append(f"{name}_probability must be in [0, 1], got {probability}")
        for name in ("brightness", "contrast", "saturation"):
            if getattr(self, name) < 0:
                found.append(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 <= self.hue <= 0.5:
            found.append(f"hue must be in [0, 0.5], got {self.hue}")
        if not 0 < self.blur_fraction <= 1:
            found.append(f"blur_fraction must be in (0, 1], got {self.blur_fraction}")
        return found + self._size_problems()

    def _size_problems(self) -> list[str]:
        found = []
        for name in ("output_size", "evaluation_resize"):
            value = getattr(self, name)
            if value is not None and value < 1:
                found.append(f"{name} must be at least 1, got {value}")
        if self.evaluation_resize is not None and self.evaluation_resize < (self.output_size or 1):
            found.append(f"evaluation_resize must be at least output_size, got {self.evaluation_resize}")
        if self.evaluation_resize is not None and self.output_size is None:
            found.append("evaluation_resize needs output_size")
        return found


CIFAR10_TSAI2021 = Recipe()
"""The code of Tsai et al. 2021 (arXiv 2104.13712) for CIFAR-10, with torchvision's default scale and ratio."""

STL10_TSAI2021 = Recipe(
    crop_scale=(0.2, 1.0),
    interpolation="bicubic",
    grayscale_probability=0.1,
    output_size=64,
    evaluation_resize=70,
    colour_first=True,
)
"""The same code for STL-10: views of 64 x 64, evaluated on the centre 64 x 64 of the image at 70 x 70."""

SIMCLR = Recipe(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2, blur_probability=0.5)
"""SimCLR (arXiv 2002.05709, Appendix A) at colour strength 1, for images larger than CIFAR's.

Deviation: brightness is multiplied, as in torchvision, while the paper's listing adds to it.
"""

RECIPES = {"cifar10-tsai2021": CIFAR10_TSAI2021, "stl10-tsai2021": STL10_TSAI2021, "simclr": SIMCLR}
