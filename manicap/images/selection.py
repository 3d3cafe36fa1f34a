"""The images a run uses: a named dataset or a folder, and how many of its training images."""

from pathlib import Path

from manicap.core.errors import UserError, unknown_choice
from manicap.core.seeding import numpy_generator
from manicap.images.dataset import ImageDataset, Split, subset
from manicap.images.inventory import ARCHIVES
from manicap.images.registry import open_dataset

NAMED = ("cifar10", "stl10")


def require_dataset(dataset: str) -> None:
    if dataset in NAMED:
        return
    if dataset == "folder" and not Path(dataset).is_dir():
        raise UserError("name a folder of images by its path: --dataset PATH, with images in PATH/train/CLASS/*.png")
    try:
        dataset.encode()
        is_folder = Path(dataset).is_dir()
    except (OSError, ValueError):  # the name is too long or not UTF-8: there is no such folder
        is_folder = False
    if not is_folder:
        raise unknown_choice("dataset", dataset, [*NAMED, "the path of an image folder"])


def has_images(dataset: str, data_dir: Path) -> bool:
    """Whether the images are on this machine, so that nothing would be downloaded."""
    if dataset not in NAMED:
        return Path(dataset).is_dir()
    archive = ARCHIVES[dataset]
    return (data_dir / dataset / archive.folder).is_dir() or (data_dir / dataset / archive.file_name).is_file()


def open_images(
    dataset: str, split: Split, data_dir: Path, num_images: int | None = None, quiet: bool = True
) -> ImageDataset:
    """cifar10 and stl10 live in `data_dir` under their names; anything else is the path of an image folder.

    Training splits are limited to `num_images` (all of them, if there are fewer), the same ones whatever the run's
    seed: runs differ in what they learn, not in what they learn from. The test split is always complete.
    """
    require_dataset(dataset)
    reader, directory = (dataset, data_dir / dataset) if dataset in NAMED else ("folder", Path(dataset))
    found = open_dataset(reader, directory, split, quiet=quiet)
    if split == "test" or num_images is None or num_images >= len(found):
        return found
    return subset(found, num_images, numpy_generator(0, "images", num_images))
