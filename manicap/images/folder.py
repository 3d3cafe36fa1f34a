"""A folder of images: `train/<class>/*.png` and `test/<class>/*.png` (also jpg, jpeg), all of one size.

A directory of class folders without `train` has no test split. Images are decoded once, into `.manicap/<split>.npy`
(uint8 [N, 3, H, W]), with `<split>.json` beside it: what was decoded, the sha256 of the array, the mean and standard
deviation of its pixels. The array is built anew when a file was added, removed or touched, or the array damaged.
"""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import UserError
from manicap.core.files import atomic_file, exclusive_lock, sha256_file, write_json
from manicap.core.progress import Tracker
from manicap.images.dataset import ImageDataset, ImageRows, Split

SUFFIXES = (".png", ".jpg", ".jpeg")
CACHE = ".manicap"
_FORMAT = 1


def open_folder(directory: Path, split: Split, *, download: bool = True, quiet: bool = False) -> ImageDataset:
    """`pretrain` and `train` are the same images; every split has the class names, mean and deviation of `train`."""
    del download  # there is nothing to download
    train = _listing(directory, "train")
    listing = train if split != "test" else _listing(directory, "test")
    strangers = sorted(set(listing.class_names) - set(train.class_names))
    if strangers:
        raise UserError(f"{listing.root} has classes that train does not have: {', '.join(strangers)}")
    train_info = _decoded(directory, train, quiet)
    info = train_info if listing is train else _decoded(directory, listing, quiet)
    if info["shape"][1:] != train_info["shape"][1:]:
        raise UserError(
            f"test images are {_size(info['shape'])} and train images {_size(train_info['shape'])}:"
            " all images must have one size; resize them first"
        )
    class_index = {name: number for number, name in enumerate(train.class_names)}
    labels = np.array([class_index[path.parent.name] for path in listing.paths], np.int64)
    return ImageDataset(
        name="folder",
        split=split,
        images=ImageRows([np.load(_array_path(directory, listing), mmap_mode="r")]),
        labels=labels,
        class_names=train.class_names,
        mean=tuple(train_info["mean"]),
        std=tuple(train_info["std"]),
        fingerprint=hashlib.sha256(info["sha256"].encode() + labels.astype("<i8").tobytes()).hexdigest()[:12],
    )


@dataclass(frozen=True)
class _Listing:
    """The image files under a split's folder, in order."""

    split: str
    root: Path
    paths: tuple[Path, ...]

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(sorted({path.parent.name for path in self.paths}))

    def digest(self) -> str:
        """Names the files, their sizes and time stamps."""
        entries = []
        for path in self.paths:
            status = path.stat()
            entries.append([str(path.relative_to(self.root)), status.st_size, status.st_mtime_ns])
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def _listing(directory: Path, split: str) -> _Listing:
    root = directory / split
    if split == "train" and not root.is_dir():
        root = directory
    paths = sorted(path for path in root.glob("[!.]*/*") if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise UserError(
            f"there are no images {root}/<class>/*.png (jpg, jpeg)"
            + ("; a test split needs a folder 'test' beside 'train'" if split == "test" else "")
        )
    return _Listing(split, root, tuple(paths))


def _array_path(directory: Path, listing: _Listing) -> Path:
    return directory / CACHE / f"{listing.split}.npy"


def _decoded(directory: Path, listing: _Listing, quiet: bool) -> dict[str, Any]:
    """What the JSON beside the array says, after decoding the images if that was not done yet."""
    array, digest = _array_path(directory, listing), listing.digest()
    info = _read_info(array, digest)
    if info is not None:
        return info
    tracker = Tracker("", 0, quiet=quiet)
    try:
        with exclusive_lock(array.parent / ".lock", lambda: tracker.say(f"waiting for another process in {directory}")):
            info = _read_info(array, digest)
            return _decode_all(array, listing, digest, quiet) if info is None else info
    except PermissionError:
        raise UserError(
            f"decoded images are kept in {array.parent}, which cannot be written: copy the folder"
        ) from None


def _read_info(array: Path, digest: str) -> dict[str, Any] | None:
    """None if the array is to be decoded."""
    try:
        info: dict[str, Any] = json.loads(array.with_suffix(".json").read_text())
        status = array.stat()
    except (OSError, ValueError):
        return None
    if info.get("format") != _FORMAT or info["listing"] != digest or info["bytes"] != status.st_size:
        return None
    if info["mtime_ns"] != status.st_mtime_ns and sha256_file(array) != info["sha256"]:
        return None
    return info


def _decode_all(array: Path, listing: _Listing, digest: str, quiet: bool) -> dict[str, Any]:
    first = _decode(listing.paths[0])
    shape = (len(listing.paths), *first.shape)
    sums, squares, num_pixels = np.zeros(3), np.zeros(3), shape[0] * shape[2] * shape[3]
    with (
        atomic_file(array) as file,
        Tracker(f"decoding {listing.root}", shape[0], unit="images", quiet=quiet) as tracker,
    ):
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for path, image in zip(listing.paths, _decode_in_order(listing.paths), strict=True):
            if image.shape != first.shape:
                raise UserError(
                    f"{path} is {_size(image.shape)} and {listing.paths[0]} is {_size(first.shape)}:"
                    " all images must have one size; resize them first"
                )
            file.write(image.tobytes())
            values = image.reshape(3, -1) / 255
            sums, squares = sums + values.sum(1), squares + (values**2).sum(1)
            tracker.advance()
    mean = sums / num_pixels
    status = array.stat()
    info = {
        "format": _FORMAT,
        "listing": digest,
        "shape": list(shape),
        "sha256": sha256_file(array),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "mean": mean.tolist(),
        "std": np.sqrt(np.maximum(squares / num_pixels - mean**2, 1e-12)).tolist(),
    }
    write_json(array.with_suffix(".json"), info)
    return info


def _decode_in_order(paths: tuple[Path, ...], ahead: int = 256) -> Iterator[NDArray[np.uint8]]:
    with ThreadPoolExecutor() as pool:  # decoding releases Python's lock
        for start in range(0, len(paths), ahead):
            yield from pool.map(_decode, paths[start : start + ahead])


def _decode(path: Path) -> NDArray[np.uint8]:
    """uint8 [3, H, W]."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UserError("reading an image folder needs pillow: install manicap[images]") from None
    try:
        with Image.open(path) as image:
            return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:  # pillow raises SyntaxError for a broken PNG
        raise UserError(f"{path} cannot be decoded ({error}); mend or remove it") from None


def _size(shape: Any) -> str:
    return f"{shape[-1]} x {shape[-2]}"
