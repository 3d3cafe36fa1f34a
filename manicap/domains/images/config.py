"""The config of a run on images."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from manicap.algorithms.base import PresetName
from manicap.core.errors import unknown_choice
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Seed, Side
from manicap.domains.run_config import RunConfig, Subject, find_method_for
from manicap.images.recipes import RECIPES, Recipe

ImageProtocolName = Literal["clean", "tsai2021"]
"""clean: nothing is chosen by test images. tsai2021: as the code of arXiv 2104.13712 behaves."""


@dataclass(frozen=True, kw_only=True)
class Images(Subject):
    """The images to learn from."""

    dataset: str = "cifar10"
    """cifar10, stl10, or the path of a folder with train/CLASS/*.png and test/CLASS/*.png."""
    num_images: Count | None = None
    """Learn from this many of the training images, the same for all seeds; from all if absent."""
    recipe: str = "auto"
    """Views: cifar10-tsai2021, stl10-tsai2021 or simclr; auto takes the dataset's own."""
    view_size: Side | None = None
    """Side of the square views that the network sees; the recipe's if absent."""
    protocol: ImageProtocolName = "clean"
    """What checks may see: a held-out part of the training images (clean), or the test images (tsai2021)."""
    check_every: Count | None = None
    """Epochs between checks by nearest neighbours while training; none if absent."""


@dataclass(frozen=True, kw_only=True)
class ImageConfig(RunConfig, Images):  # the fields of the last base come first
    """A run on images. The defaults are Table 5 of arXiv 2405.13848."""

    domain: str = "images"
    """Domain."""
    method: str = "barlow-twins-c+"
    """Method; its own flags follow from it."""
    seed: Seed = 0
    """Seed of the initial weights, the batches and the views."""
    batch_size: BatchSize = 128
    """Images per step, over all processes; each is seen in two views or more."""
    learning_rate: Positive = 1e-3
    """Of Adam."""
    adam_epsilon: NonNegative = 1e-8
    """Of Adam."""
    weight_decay: NonNegative | None = 1e-6
    """Of Adam, added to the gradient."""
    max_epochs: Count = 1000
    """Passes over the images."""
    patience: Count | None = None
    """Stop after this many epochs without a better check; never if absent."""
    weights: Literal["best", "last"] = "last"
    """Keep the last weights, or those of the best check."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recipe == "auto":
            own = "stl10-tsai2021" if self.dataset == "stl10" else "cifar10-tsai2021"
            object.__setattr__(self, "recipe", own)
        if self.recipe not in RECIPES:
            raise unknown_choice("recipe", self.recipe, RECIPES)

    @property
    def view_recipe(self) -> Recipe:
        recipe = RECIPES[self.recipe]
        if self.view_size is None:
            return recipe
        return replace(recipe, output_size=self.view_size, evaluation_resize=None)

    def problems(self) -> list[str]:
        found = []
        if self.check_every is None and (self.weights == "best" or self.patience is not None):
            found.append("weights 'best' and patience need checks: say how often with check_every")
        if self.weights == "best" and (self.check_every or 0) > self.max_epochs:
            found.append(f"weights 'best' needs a check within {self.max_epochs} epochs, not every {self.check_every}")
        return found

    @property
    def subject(self) -> str:
        return Path(self.dataset).name


def image_preset(name: PresetName, dataset: str, method: str, protocol: ImageProtocolName) -> ImageConfig:
    """quick: minutes on two cores. standard: a night. paper: Table 5 of arXiv 2405.13848, as it is.

    tsai2021 checks every fifth epoch and keeps the weights of the best check, as its code does.
    """
    settings: Any = find_method_for("images", method).settings_type.preset(name)
    if dataset == "stl10":
        settings = replace(settings, stem="stl10")
    common: dict[str, Any] = {"dataset": dataset, "method": method, "protocol": protocol}
    if protocol == "tsai2021":
        common |= {"check_every": 5, "weights": "best"}
    if name == "quick":
        return ImageConfig(**common, settings=settings, num_images=10_000, view_size=24, max_epochs=30)
    if name == "standard":
        return ImageConfig(**common, settings=settings, max_epochs=50)
    return ImageConfig(**common, settings=settings)
