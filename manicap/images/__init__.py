"""Image datasets: CIFAR-10, STL-10 and folders of images, uint8 and memory-mapped.

    train = manicap.images.open_dataset("cifar10", Path("data/cifar10"), "train")
    train.images[[3, 1, 4]]     # uint8 [3, 3, 32, 32]
    train.labels[[3, 1, 4]]     # int64 [3]

Augmentation is in `manicap.images.views`, which needs torch; the readers do not.
"""

from manicap.images.dataset import ImageDataset, hold_out, subset
from manicap.images.registry import DATASETS, open_dataset

__all__ = ["DATASETS", "ImageDataset", "hold_out", "open_dataset", "subset"]
