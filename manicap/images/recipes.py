"""Recipes: the random views a method learns from, as data."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manicap.core.ranges import Fraction, NonNegative, Positive, Range, Side


@dataclass(frozen=True)
class Recipe:
    """A distribution over views. The order is crop, flip, jitter, grayscale, blur, unless `colour_first`."""

    crop_scale: tuple[Positive, Positive] = (0.08, 1.0)
    """Area of the crop relative to the image, uniform in this range."""
    crop_ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3)
    """Aspect ratio of the crop (width / height), log-uniform in this range."""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """How a crop is resized: Pillow's filters, which average when they shrink."""
    flip_probability: Fraction = 0.5
    """Probability of mirroring left and right."""
    jitter_probability: Fraction = 0.8
    """Probability of changing brightness, contrast, saturation and hue, in one of the 24 orders."""
    brightness: NonNegative = 0.4
    """The factor is uniform in [max(0, 1 - brightness), 1 + brightness]; likewise for contrast and saturation."""
    contrast: NonNegative = 0.4
    saturation: NonNegative = 0.4
    hue: Annotated[float, Range(0, 0.5)] = 0.1
    """The shift is uniform in [-hue, hue], as a fraction of the colour circle."""
    grayscale_probability: Fraction = 0.2
    blur_probability: Fraction = 0.0
    blur_sigma: tuple[Positive, Positive] = (0.1, 2.0)
    """Standard deviation of the Gaussian in pixels, uniform in this range."""
    blur_fraction: Annotated[float, Range(0, 1, above=True)] = 0.1
    """Width of the Gaussian kernel relative to the height of the image."""
    output_size: Side | None = None
    """Side of a view in pixels; by default, that of the image."""
    evaluation_resize: Side | None = None
    """Side to which the whole image is resized before its centre is cropped for evaluation; default: the side that is
    evaluated."""
    evaluation_size: Side | None = None
    """Side that is evaluated, for networks that see images of any size; default: `output_size`."""
    colour_first: bool = False
    """Apply jitter and grayscale to the whole image, and crop it afterwards."""

    def problems(self) -> list[str]:
        found = []
        for name, low, high in (("crop_scale", 0.0, 1.0), ("crop_ratio", 0.0, None), ("blur_sigma", 0.0, None)):
            values = getattr(self, name)
            if len(values) != 2 or not low < values[0] <= values[1] or (high is not None and values[1] > high):
                limits = f"0 < low <= high{'' if high is None else f' <= {high:g}'}"
                found.append(f"{name} must be (low, high) with {limits}, got {values}")
        return found + self._size_problems()

    def _size_problems(self) -> list[str]:
        found = []
        if self.evaluation_resize is not None and self.evaluation_resize < (self.evaluated_size or 1):
            found.append(f"evaluation_resize must be at least the side evaluated, got {self.evaluation_resize}")
        if self.evaluation_resize is not None and self.output_size is None:
            found.append("evaluation_resize needs output_size")
        return found

    @property
    def evaluated_size(self) -> int | None:
        """Side of what is evaluated; None for that of the image."""
        return self.evaluation_size or self.output_size


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

Deviation: brightness is multiplied, as in torchvision, whereas the paper's listing adds to it.
"""

RECIPES = {"cifar10-tsai2021": CIFAR10_TSAI2021, "stl10-tsai2021": STL10_TSAI2021, "simclr": SIMCLR}
