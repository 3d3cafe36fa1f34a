"""Between an image of a dataset and the network: scaling, resizing, the centre, normalisation."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from manicap.core.ranges import NonNegative, Positive, Range, Side
from manicap.images.recipes import Recipe
from manicap.images.resampling import apply_separable, resize_matrices

Channels = Annotated[int, Range(1, 64)]


@dataclass(frozen=True)
class ImageView:
    """How an image of a dataset is shown to a network when nothing is random."""

    image_shape: tuple[Channels, Side, Side]
    """Channels, height and width of the dataset's images."""
    size: Side | None
    """Side of what the network sees; None for the image as it is."""
    resize: Side | None
    """Side to which the image is resized before its centre is cropped to `size`; None for `size`."""
    interpolation: Literal["bilinear", "bicubic"]
    mean: tuple[NonNegative, ...]
    """Per channel, for pixels in [0, 1]; if empty, nothing is subtracted."""
    std: tuple[Positive, ...]

    @classmethod
    def of(
        cls, image_shape: tuple[int, int, int], recipe: Recipe, mean: tuple[float, ...], std: tuple[float, ...]
    ) -> "ImageView":
        return cls(image_shape, recipe.evaluated_size, recipe.evaluation_resize, recipe.interpolation, mean, std)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what the network sees."""
        channels, height, width = self.image_shape
        return (channels, height, width) if self.size is None else (channels, self.size, self.size)

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Of rows and of columns, as in `manicap.images.views.evaluation_view`."""
        assert self.size is not None
        resized = self.resize or self.size
        margin = (resized - self.size + 1) // 2
        found = []
        for side in self.image_shape[1:]:
            whole = resize_matrices(torch.zeros(()), torch.tensor(float(side)), side, resized, self.interpolation)
            found.append(whole[margin : margin + self.size])
        return found[0], found[1]


class ImageInput(nn.Module):
    """uint8 images, of the dataset's size or of the network's, to what the network learned from. It has no weights."""

    rows: Tensor
    columns: Tensor
    mean: Tensor
    std: Tensor

    def __init__(self, view: ImageView) -> None:
        super().__init__()
        self.view = view
        channels = view.image_shape[0]
        self.resizes = view.size is not None
        matrices = view.matrices() if self.resizes else (torch.empty(0), torch.empty(0))
        statistics = (list(view.mean) or [0.0] * channels, list(view.std) or [1.0] * channels)
        values = {"rows": matrices[0], "columns": matrices[1]}
        values |= {name: torch.tensor(x)[:, None, None] for name, x in zip(("mean", "std"), statistics, strict=True)}
        for name, value in values.items():
            self.register_buffer(name, value, persistent=False)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        x = images_BCHW.to(self.mean.dtype) / 255
        # An image of both sizes is one of the dataset's: it is shown as a probe is shown it.
        if self.resizes and tuple(images_BCHW.shape[1:]) == self.view.image_shape:
            x = apply_separable(x, self.rows, self.columns).clamp(0, 1)
        return (x - self.mean) / self.std
