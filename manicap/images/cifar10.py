"""CIFAR-10 (Krizhevsky 2009) in its published binary layout.

    cifar-10-batches-bin/data_batch_1.bin ... data_batch_5.bin, test_batch.bin     10,000 records each
    cifar-10-batches-bin/batches.meta.txt                                          ten class names

A record is a label byte and 3,072 bytes: red, green and blue planes of 32 x 32, row by row.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.images.archive import Archive, provide_files
from manicap.images.dataset import ImageDataset, ImageRows, Labels, Split, check_labels
from manicap.images.manifest import check_files

SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32
CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NAMES_FILE = "batches.meta.txt"
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2023, 0.1994, 0.2010)
"""As in the code of arXiv 2104.13712 and most others. This is the mean over images of each image's own standard
deviation; that of all pixels together is (0.2470, 0.2435, 0.2616)."""

ARCHIVE = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    size="162 MB",
    folder="cifar-10-batches-bin",
)


@dataclass(frozen=True)
class Layout:
    """Counts and archive; the defaults are the published ones."""

    images_per_file: int = 10_000
    archive: Archive = ARCHIVE

    def files(self, split: Split) -> list[str]:
        return ["test_batch.bin"] if split == "test" else [f"data_batch_{number}.bin" for number in range(1, 6)]


PUBLISHED = Layout()


def open_cifar10(
    directory: Path, split: Split, *, download: bool = True, quiet: bool = False, layout: Layout = PUBLISHED
) -> ImageDataset:
    """`pretrain` and `train` are the same 50,000 images, `test` the other 10,000."""
    files = layout.files(split)
    provide_files(directory, layout.archive, [*files, NAMES_FILE], download, quiet)
    folder = directory / layout.archive.folder
    hashes = check_files(folder, {NAMES_FILE: None, **dict.fromkeys(files, layout.images_per_file * RECORD)})
    records = [np.memmap(folder / name, np.uint8, "r").reshape(-1, RECORD) for name in files]
    return ImageDataset(
        name="cifar10",
        split=split,
        images=ImageRows([part[:, 1:].reshape(-1, *SHAPE) for part in records]),
        labels=np.concatenate([_labels(part, folder / name) for part, name in zip(records, files, strict=True)]),
        class_names=_class_names(folder / NAMES_FILE),
        mean=MEAN,
        std=STD,
        fingerprint=hashlib.sha256("".join(hashes[name] for name in files).encode()).hexdigest()[:12],
    )


def _labels(records: NDArray[np.uint8], path: Path) -> Labels:
    labels = records[:, 0].astype(np.int64)
    check_labels(labels, len(CLASS_NAMES), str(path))
    return labels


def _class_names(path: Path) -> tuple[str, ...]:
    if path.read_bytes().split() != [name.encode() for name in CLASS_NAMES]:
        raise UserError(f"{path} does not contain the ten class names of CIFAR-10; remove it and try again to fetch it")
    return CLASS_NAMES
