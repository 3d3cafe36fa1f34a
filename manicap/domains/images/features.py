"""A frozen encoder of images: features of plain images, computed once, or of random views."""

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manicap.algorithms.base import Method, ProbeInput
from manicap.core.progress import Tracker
from manicap.core.seeding import stream_seed
from manicap.domains.samples import Rows
from manicap.images.dataset import ImageDataset
from manicap.images.recipes import Recipe
from manicap.images.views import evaluation_view, make_views, normalise
from manicap.probing.feature_cache import cached_features

_IMAGES = 500
_CHECKED_IMAGES = 16
"""Number of images encoded again to verify that features on disk are the encoder's own."""


class ImageEncoder:
    """A method's features of uint8 images.

    With `moving_statistics` the running statistics of the batch normalisations follow the views given to
    `encode_views`, as in the 2021 code, which freezes the weights of the encoder but leaves it in training mode. The
    given method is copied, not changed.
    """

    def __init__(
        self,
        method: Method,
        recipe: Recipe,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        probe_input: ProbeInput = "output",
        moving_statistics: bool = False,
    ) -> None:
        self.method = copy.deepcopy(method) if moving_statistics else method
        self.recipe, self.mean, self.std, self.probe_input = recipe, mean, std, probe_input
        self.moving_statistics = moving_statistics
        self.device = next(method.encoder.parameters()).device
        C, H, W = method.context.input_shape
        self.width = self._represent(torch.zeros(1, C, H, W, device=self.device)).shape[1]

    def encode(self, dataset: ImageDataset, quiet: bool = True) -> Tensor:
        """Features `[N, F]` of all images as they are, with frozen statistics."""
        return torch.cat(list(self._encode_blocks(dataset, quiet)))

    def encode_once(self, dataset: ImageDataset, cache_dir: Path, fingerprint: str, quiet: bool = True) -> Tensor:
        """The same, kept in `cache_dir` for the next probe; `fingerprint` identifies the method with its weights."""
        view = (self.recipe, self.mean, self.std, self.probe_input)
        key = hashlib.sha256(f"{fingerprint} {dataset.fingerprint} {view}".encode()).hexdigest()[:16]
        sample = self._encode_plain(dataset.images[:_CHECKED_IMAGES]).cpu().numpy()
        cached = cached_features(
            cache_dir, key, sample, len(dataset), lambda: (x.cpu().numpy() for x in self._encode_blocks(dataset, quiet))
        )
        return torch.from_numpy(cached).to(self.device)

    def _encode_blocks(self, dataset: ImageDataset, quiet: bool) -> Iterator[Tensor]:
        with Tracker(f"encoding {dataset.name}", len(dataset), "images", quiet) as tracker:
            for start in range(0, len(dataset), _IMAGES):
                images = dataset.images[start : start + _IMAGES]
                yield self._encode_plain(images)
                tracker.advance(len(images))

    def _encode_plain(self, images: NDArray[np.uint8]) -> Tensor:
        return self._represent(normalise(evaluation_view(self._on_device(images), self.recipe), self.mean, self.std))

    def encode_views(self, images: NDArray[np.uint8], seed: int) -> Tensor:
        """Features `[B, F]` of one random view of each image."""
        generator = torch.Generator(self.device).manual_seed(seed)
        recipe = replace(self.recipe, output_size=self.recipe.evaluated_size)
        views = make_views(self._on_device(images), recipe, 1, generator)[:, 0]
        return self._represent(normalise(views, self.mean, self.std), training=self.moving_statistics)

    @torch.no_grad()
    def _represent(self, views_BCHW: Tensor, training: bool = False) -> Tensor:
        self.method.train(training)
        features = self.method.represent(views_BCHW, self.probe_input)
        self.method.eval()
        return features

    def _on_device(self, images: NDArray[np.uint8]) -> Tensor:
        return torch.from_numpy(images).to(self.device)


class AugmentedFeatures:
    """Features of a new view of each image in every epoch."""

    def __init__(self, encoder: ImageEncoder, dataset: ImageDataset, seed: int) -> None:
        self.encoder, self.dataset, self.seed, self.width = encoder, dataset, seed, encoder.width

    def take(self, rows: Rows, *stream: str | int) -> Tensor:
        seed = stream_seed(self.seed, "probe views", *stream)
        return self.encoder.encode_views(self.dataset.images[rows], seed)
