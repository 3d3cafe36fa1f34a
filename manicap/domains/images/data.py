"""Views of images to train on.

The views of a step are drawn from the stream (seed, "views", step) for the whole batch, of which each process takes its
share. They depend neither on earlier draws nor on the number of processes.
"""

from collections.abc import Mapping
from pathlib import Path

import torch

from manicap.algorithms.base import Batch, MethodContext
from manicap.core.memo import once
from manicap.core.seeding import stream_seed
from manicap.domains.images.config import ImageConfig
from manicap.domains.samples import EachOnce, Rows, SampleOrder
from manicap.images.dataset import ImageDataset, Split
from manicap.images.recipes import Recipe
from manicap.images.selection import open_images
from manicap.images.views import make_views, normalise
from manicap.nn.image_input import ImageView
from manicap.train.device import noise_generator


class ImageData:
    """Random views of the images of a dataset, normalised."""

    def __init__(self, config: ImageConfig, dataset: ImageDataset, device: torch.device, rank: int = 0) -> None:
        self.config, self.dataset, self.device, self.rank = config, dataset, device, rank
        self.recipe = config.view_recipe
        self.context = image_context(dataset, self.recipe)
        self.fingerprint = dataset.fingerprint

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        self.num_views = frames_per_sample
        return {"train": EachOnce(len(self.dataset), "images", "use more of them (num_images)")}

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        seed = self.config.seed
        generator = torch.Generator(self.device).manual_seed(stream_seed(seed, "views", *stream))
        images = torch.from_numpy(self.dataset.images[rows]).to(self.device)
        share, total = len(rows), self.config.batch_size
        views = make_views(images, self.recipe, self.num_views, generator, first=self.rank * share, global_batch=total)
        noise = noise_generator(seed, self.device, self.rank, *stream)
        return Batch(normalise(views, self.dataset.mean, self.dataset.std), None, noise)


def open_split(config: ImageConfig, split: Split, data_dir: Path, quiet: bool = True) -> ImageDataset:
    """The images of a run, opened once per job."""
    key = ("images", config.dataset, split, Path(data_dir), config.num_images)
    return once(key, lambda: open_images(config.dataset, split, data_dir, config.num_images, quiet))


def image_context(dataset: ImageDataset, recipe: Recipe) -> MethodContext:
    """The size that a network sees, that of the recipe's views or that of the images, and how it gets there."""
    channels, height, width = dataset.images.shape[1:]
    view = ImageView.of((channels, height, width), recipe, dataset.mean, dataset.std)
    return MethodContext(view.shape, mean=dataset.mean, std=dataset.std, image_view=view)
