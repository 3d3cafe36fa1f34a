"""The datasets by name."""

import os
from pathlib import Path
from typing import Protocol

from manicap.core.errors import unknown_choice
from manicap.images.cifar10 import open_cifar10
from manicap.images.dataset import SPLITS, ImageDataset, Split
from manicap.images.folder import open_folder
from manicap.images.stl10 import open_stl10


class Reader(Protocol):
    def __call__(
        self, directory: Path, split: Split, *, download: bool = True, quiet: bool = False
    ) -> ImageDataset: ...


DATASETS: dict[str, Reader] = {"cifar10": open_cifar10, "stl10": open_stl10, "folder": open_folder}


def open_dataset(
    name: str, directory: str | os.PathLike[str], split: Split, *, download: bool = True, quiet: bool = False
) -> ImageDataset:
    """A split of a dataset kept in `directory`; CIFAR-10 and STL-10 are downloaded into it if absent.

    `folder` reads `directory/train/<class>/*.png` (jpg, jpeg) and `directory/test/<class>/*`.
    """
    if name not in DATASETS:
        raise unknown_choice("dataset", name, DATASETS)
    if split not in SPLITS:
        raise unknown_choice("split", split, SPLITS)
    return DATASETS[name](Path(directory), split, download=download, quiet=quiet)
