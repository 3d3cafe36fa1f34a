"""Views of images to train on.

The views of a step are drawn from the stream (seed, "views", step) for the whole batch, of which a process takes its
share: they depend neither on what was drawn before nor on the number of processes.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from manicap.core.seeding import stream_seed
from manicap.images.dataset import ImageDataset, Split
from manicap.images.recipes import Recipe
from manicap.images.selection import open_images
from manicap.images.views import make_views, normalise
from manicap.methods.base import Batch, MethodContext
from manicap.train.batches import SampleOrder
from manicap.train.device import noise_generator
from manicap.train.distributed import Processes
from manicap.train.image_config import ImageConfig

Rows = NDArray[np.int64]


class ImageSamples:
    """Every image once an epoch."""

    def __init__(self, num_images: int) -> None:
        self.per_epoch = num_images
        self.size = f"{num_images} images"
        self.remedy = "take more of them (num_images)"

    def rows(self, index: NDArray[np.int64]) -> Rows:
        return index

    def order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.permutation(self.per_epoch)


class ImageData:
    """Random views of the images of a dataset, normalised."""

    def __init__(self, config: ImageConfig, dataset: ImageDataset, device: torch.device, processes: Processes) -> None:
        self.config, self.dataset, self.device, self.processes = config, dataset, device, processes
        self.recipe = config.view_recipe
        self.context = image_context(dataset, self.recipe)
        self.identity = {"dataset": dataset.fingerprint}

    def splits(self, frames_per_sample: int) -> Mapping[str, SampleOrder]:
        self.num_views = frames_per_sample
        return {"train": ImageSamples(len(self.dataset))}

    def batch(self, rows: Rows, *stream: str | int) -> Batch:
        seed, rank = self.config.seed, self.processes.rank
        generator = torch.Generator(self.device).manual_seed(stream_seed(seed, "views", *stream))
        images = torch.from_numpy(self.dataset.images[rows]).to(self.device)
        share, total = len(rows), self.config.batch_size
        views = make_views(images, self.recipe, self.num_views, generator, first=rank * share, global_batch=total)
        noise = noise_generator(seed, self.device, rank, *stream)
        return Batch(normalise(views, self.dataset.mean, self.dataset.std), None, noise)


def open_image_data(
    config: ImageConfig, data_dir: Path, device: torch.device, processes: Processes, quiet: bool
) -> ImageData:
    """Download the dataset, the first process alone and before the others, or open it."""
    if processes.is_first:
        open_split(config, "pretrain", data_dir, quiet)
    processes.barrier()
    return ImageData(config, open_split(config, "pretrain", data_dir, quiet=True), device, processes)


def open_split(config: ImageConfig, split: Split, data_dir: Path, quiet: bool = True) -> ImageDataset:
    """The images of a run."""
    return open_images(config.dataset, split, data_dir, config.num_images, quiet)


def image_context(dataset: ImageDataset, recipe: Recipe) -> MethodContext:
    """A network sees views of the recipe's size, or images of their own."""
    channels, height, width = dataset.images.shape[1:]
    if recipe.output_size is not None:
        height = width = recipe.output_size
    return MethodContext((channels, height, width), mean=dataset.mean, std=dataset.std)
