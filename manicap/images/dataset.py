"""What every reader returns: images that stay on disk until indexed, labels, and a fingerprint of their bytes."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError

Split = Literal["pretrain", "train", "test"]
SPLITS: tuple[Split, ...] = ("pretrain", "train", "test")
"""`pretrain`: all images available for training without labels; `train`: the labelled ones, for probes; `test`."""

Labels = NDArray[np.int64]
Rows = NDArray[np.int64]


class ImageRows:
    """Images `[N, C, H, W]` in one or several memory-mapped arrays, indexed as one; indexing copies."""

    def __init__(self, parts: Sequence[NDArray[np.uint8]], rows: Rows | None = None) -> None:
        """`rows` selects and orders images of the concatenated parts; by default all of them."""
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(len(part) for part in self._parts)])
        self._rows = np.arange(self._starts[-1]) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._parts[0].shape[1:])

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        return np.dtype(np.uint8)

    def __getitem__(self, index: Any) -> NDArray[np.uint8]:
        """Images at an integer, a slice, or an array of integers (of any shape) or booleans."""
        chosen = self._rows[index]
        rows = chosen.reshape(-1)
        images = np.empty((len(rows), *self.shape[1:]), np.uint8)
        part_of_row = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(part_of_row):
            inside = part_of_row == number
            images[inside] = self._parts[number][rows[inside] - self._starts[number]]
        return images.reshape(*chosen.shape, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:] if dtype is None else self[:].astype(dtype)

    def take(self, rows: Rows) -> "ImageRows":
        return ImageRows(self._parts, self._rows[rows])


@dataclass(frozen=True)
class ImageDataset:
    """One split of a dataset."""

    name: str
    split: Split
    images: ImageRows
    """uint8 [N, C, H, W]."""
    labels: Labels | None
    """[N], or None if some images have no label."""
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    """Per channel, for pixels in [0, 1]: networks see (pixel - mean) / std."""
    std: tuple[float, ...]
    fingerprint: str
    """12 hex digits that identify the bytes of the images and labels, and their order."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def take(self, rows: Rows) -> "ImageDataset":
        """The images at `rows`, in that order."""
        rows = np.asarray(rows, np.int64)
        digest = hashlib.sha256(self.fingerprint.encode() + rows.astype("<i8").tobytes())
        return dataclasses.replace(
            self,
            images=self.images.take(rows),
            labels=None if self.labels is None else self.labels[rows],
            fingerprint=digest.hexdigest()[:12],
        )


def subset(dataset: ImageDataset, num_images: int, rng: np.random.Generator) -> ImageDataset:
    """`num_images` drawn without replacement, stratified by class if there are labels, in the dataset's order."""
    if not 1 <= num_images <= len(dataset):
        raise UserError(f"{dataset.name} has {len(dataset)} {dataset.split} images, fewer than {num_images}")
    return dataset.take(_draw(dataset, num_images, rng))


def hold_out(dataset: ImageDataset, fraction: float, rng: np.random.Generator) -> tuple[ImageDataset, ImageDataset]:
    """(rest, held-out part): the part has round(fraction x N) images, drawn as in `subset`; no image is in both."""
    num_held = round(fraction * len(dataset))
    if not 0 < num_held < len(dataset):
        raise UserError(
            f"a fraction of {fraction} of {len(dataset)} images leaves one of the two parts empty;"
            " use a fraction between 0 and 1, or more images"
        )
    held = _draw(dataset, num_held, rng)
    rest = np.setdiff1d(np.arange(len(dataset)), held, assume_unique=True)
    return dataset.take(rest), dataset.take(held)


def _draw(dataset: ImageDataset, count: int, rng: np.random.Generator) -> Rows:
    labels = np.zeros(len(dataset), np.int64) if dataset.labels is None else dataset.labels
    return stratified_rows(labels, count, rng)


def stratified_rows(labels: Labels, count: int, rng: np.random.Generator) -> Rows:
    """`count` sorted rows; each class gets its share to within one (the largest remainders get the rest)."""
    classes, sizes = np.unique(labels, return_counts=True)
    quotas, remainders = np.divmod(sizes * count, len(labels))
    quotas[np.argsort(-remainders, kind="stable")[: count - quotas.sum()]] += 1
    drawn = [
        rng.permutation(np.flatnonzero(labels == label))[:quota] for label, quota in zip(classes, quotas, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def check_labels(labels: Labels, num_classes: int, source: str, first: int = 0) -> None:
    """`source` names the file; `first` is the label of the first class in it."""
    wrong = np.flatnonzero((labels < first) | (labels >= first + num_classes))
    if len(wrong):
        raise UserError(
            f"{source}: image {wrong[0]} has the label {labels[wrong[0]]}, but labels range from {first} to"
            f" {first + num_classes - 1}; the file is damaged: remove it and fetch the dataset again"
        )
