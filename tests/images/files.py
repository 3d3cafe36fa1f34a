"""Small datasets in the published layouts."""

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np

from manicap.images import cifar10, stl10

CIFAR10 = cifar10.Layout(images_per_file=20)
STL10 = stl10.Layout(num_train=10, num_test=20, num_unlabeled=15)
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_cifar10(directory):
    """Six files of 20 records, as {name: (labels, images [20, 3, 32, 32])}: every class twice a file."""
    folder = directory / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    written = {}
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        labels = rng.permutation(np.arange(20) % 10)
        images = rng.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)
        records = [bytes([label]) + image.tobytes() for label, image in zip(labels, images, strict=True)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
        written[name] = labels, images
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")  # the published file ends in an empty line
    return written


def write_stl10(directory):
    """{name: images [N, 3, 96, 96]} and {name: labels 1..10}, written pixel by pixel as the authors describe."""
    folder = directory / "stl10_binary"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    images, labels = {}, {}
    for name, count in (("train", 10), ("test", 20), ("unlabeled", 15)):
        images[name] = rng.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8)
        planes = [plane for image in images[name] for plane in image]
        (folder / f"{name}_X.bin").write_bytes(b"".join(plane.tobytes(order="F") for plane in planes))
        if name != "unlabeled":
            labels[name] = 1 + rng.permutation(np.arange(count) % 10)
            (folder / f"{name}_y.bin").write_bytes(bytes(labels[name].tolist()))
    return images, labels


def pack(directory, layout, url="http://127.0.0.1:9/archive.tar.gz"):
    """The folder as an archive's bytes, and the layout that expects it at `url`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(directory / layout.archive.folder, layout.archive.folder)
    content = buffer.getvalue()
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return content, replace(layout, archive=replace(layout.archive, url=url, md5=md5))
