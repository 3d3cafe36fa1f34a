"""STL-10 (Coates, Ng, Lee 2011) in its published binary layout.

    stl10_binary/train_X.bin, train_y.bin      5,000 images and labels
    stl10_binary/test_X.bin, test_y.bin        8,000
    stl10_binary/unlabeled_X.bin             100,000, from a wider set of classes
    stl10_binary/class_names.txt               ten names

An image is 3 x 96 x 96 bytes, each plane column by column; labels range from 1 to 10.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.images.archive import Archive, provide_files
from manicap.images.dataset import ImageDataset, ImageRows, Labels, Split, check_labels
from manicap.images.manifest import check_files

SHAPE = (3, 96, 96)
IMAGE_BYTES = 3 * 96 * 96
CLASS_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
MEAN = (0.43, 0.42, 0.39)
STD = (0.27, 0.26, 0.27)
"""As in the code of arXiv 2104.13712."""

ARCHIVE = Archive(
    url="http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    md5="91f7769df0f17e558f3565bffb0821dc",
    size="2.5 GB",
    folder="stl10_binary",
)


@dataclass(frozen=True)
class Layout:
    """Counts and archive; the defaults are the published ones."""

    num_train: int = 5_000
    num_test: int = 8_000
    num_unlabeled: int = 100_000
    archive: Archive = ARCHIVE

    def image_files(self, split: Split) -> dict[str, int]:
        """Images in each file of the split."""
        if split == "test":
            return {"test_X.bin": self.num_test}
        train = {"train_X.bin": self.num_train}
        return {**train, "unlabeled_X.bin": self.num_unlabeled} if split == "pretrain" else train

    def label_files(self, split: Split) -> dict[str, int]:
        return {"pretrain": {}, "train": {"train_y.bin": self.num_train}, "test": {"test_y.bin": self.num_test}}[split]


PUBLISHED = Layout()


def open_stl10(
    directory: Path, split: Split, *, download: bool = True, quiet: bool = False, layout: Layout = PUBLISHED
) -> ImageDataset:
    """`pretrain`: train and unlabelled images, without labels; `train`: for the probe; `test`."""
    image_files, label_files = layout.image_files(split), layout.label_files(split)
    provide_files(directory, layout.archive, [*image_files, *label_files], download, quiet)
    folder = directory / layout.archive.folder
    image_sizes = {name: count * IMAGE_BYTES for name, count in image_files.items()}
    hashes = check_files(folder, {**image_sizes, **label_files})
    return ImageDataset(
        name="stl10",
        split=split,
        images=ImageRows([_images(folder / name) for name in image_files]),
        labels=_labels(folder / next(iter(label_files))) if label_files else None,
        class_names=CLASS_NAMES,
        mean=MEAN,
        std=STD,
        fingerprint=hashlib.sha256("".join(hashes.values()).encode()).hexdigest()[:12],
    )


def _images(path: Path) -> NDArray[np.uint8]:
    return np.memmap(path, np.uint8, "r").reshape(-1, *SHAPE).transpose(0, 1, 3, 2)


def _labels(path: Path) -> Labels:
    labels = np.fromfile(path, np.uint8).astype(np.int64)
    check_labels(labels, len(CLASS_NAMES), str(path), first=1)
    return labels - 1
