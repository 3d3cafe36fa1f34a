"""The config of a run on images."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from manicap.algorithms.base import PresetName
from manicap.core.errors import unknown_choice
from manicap.core.ranges import BatchSize, Count, NonNegative, Positive, Seed, Side
from manicap.domains.run_config import RunConfig, Subject, find_method_for
from manicap.images.recipes import RECIPES, Recipe
from manicap.nn.plain import LEAST_SIDE

ImageProtocolName = Literal["clean", "tsai2021"]
"""clean: nothing is selected on test images. tsai2021: as in the code of arXiv 2104.13712."""


@dataclass(frozen=True, kw_only=True)
class Images(Subject):
    """The images to learn from."""

    dataset: str = "cifar10"
    """cifar10, stl10, or the path of a folder with train/CLASS/*.png and test/CLASS/*.png."""
    num_images: Count | None = None
    """Number of training images to learn from, the same ones for all seeds; all if None."""
    recipe: str = "auto"
    """Recipe of the views: cifar10-tsai2021, stl10-tsai2021 or simclr; auto uses the dataset's own."""
    view_size: Side | None = None
    """Side of the square views that the network learns from, in pixels; the recipe's if None."""
    probe_size: Side | None = None
    """Side of the images that are probed, for networks that take any size, such as all of ours; that of the views if
    None."""
    protocol: ImageProtocolName = "clean"
    """Images that checks use: a held-out part of the training images (clean) or the test images (tsai2021)."""
    check_every: Count | None = None
    """Epochs between checks by nearest neighbours during training; no checks if None."""


@dataclass(frozen=True, kw_only=True)
class ImageConfig(RunConfig, Images):  # the fields of the last base come first
    """A run on images. The defaults are Table 5 of arXiv 2405.13848."""

    domain: str = "images"
    """Domain."""
    method: str = "barlow-twins-c+"
    """Method; determines which method-specific flags exist."""
    seed: Seed = 0
    """Random seed of the initial weights, the batches and the views."""
    batch_size: BatchSize = 128
    """Images per step, over all processes; each is seen in two or more views."""
    learning_rate: Positive = 1e-3
    """Learning rate of Adam."""
    adam_epsilon: NonNegative = 1e-8
    """Epsilon of Adam."""
    weight_decay: NonNegative | None = 1e-6
    """Weight decay of Adam, added to the gradient."""
    max_epochs: Count = 1000
    """Number of passes over the images."""
    patience: Count | None = None
    """Stop after this many epochs without a better check; never if None."""
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
        if self.view_size is not None:
            recipe = replace(recipe, output_size=self.view_size, evaluation_resize=None)
        if self.probe_size is not None:
            recipe = replace(recipe, evaluation_size=self.probe_size, evaluation_resize=None)
        return recipe

    def problems(self) -> list[str]:
        found = []
        if self.check_every is None and (self.weights == "best" or self.patience is not None):
            found.append("weights 'best' and patience require checks: set how often with check_every")
        if self.weights == "best" and (self.check_every or 0) > self.max_epochs:
            found.append(
                f"weights 'best' requires a check within {self.max_epochs} epochs, not every {self.check_every}"
            )
        sides = {"view_size": self.view_size, "probe_size": self.probe_size} if self.settings.encoder == "plain" else {}
        for name, side in sides.items():
            if side is not None and side < LEAST_SIDE:
                found.append(f"{name} must be at least {LEAST_SIDE} for the encoder plain, got {side}")
        return found

    @property
    def subject(self) -> str:
        return Path(self.dataset).name


QUICK: dict[str, Any] = {
    "num_images": 50_000,
    "view_size": 24,
    "probe_size": 32,
    "schedule": "cosine",
    "warmup_steps": 100,
    "max_epochs": 12,
}
"""Ten minutes on two cores, as found in docs/images.md."""


def image_preset(name: PresetName, dataset: str, method: str, protocol: ImageProtocolName) -> ImageConfig:
    """quick: minutes on two cores. standard: for a GPU. paper: exactly Table 5 of arXiv 2405.13848.

    tsai2021 checks every fifth epoch and keeps the weights of the best check, as its code does.
    """
    settings: Any = find_method_for("images", method).settings_type.preset(name)
    if dataset == "stl10":
        settings = replace(settings, stem="stl10")  # of a ResNet
    common: dict[str, Any] = {"dataset": dataset, "method": method, "protocol": protocol}
    if protocol == "tsai2021":
        common |= {"check_every": 5, "weights": "best"}
    if name == "quick":
        return ImageConfig(**common, settings=settings, **QUICK)
    if name == "standard":
        return ImageConfig(**common, settings=settings, max_epochs=50)
    return ImageConfig(**common, settings=settings)
