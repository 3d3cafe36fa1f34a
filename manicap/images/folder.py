"""A folder of images: `train/<class>/*.png` and `test/<class>/*.png` (also jpg, jpeg), all of one size.

A directory of class folders without `train` has no test split. Images are decoded once, into `.manicap/<split>.npy`
(uint8 [N, 3, H, W]). Beside it, the sealed `<split>.json` records what was decoded, the sha256 of the array, and the
mean and standard deviation of its pixels; `<split>.sha256` holds the hashes of the files. The array is rebuilt if a
file was added, removed or touched, or if the array is damaged.
"""

import hashlib
import io
import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manicap.core.errors import Failure, UserError
from manicap.core.files import (
    atomic_file,
    atomic_write,
    exclusive_lock,
    file_stamp,
    remove_scratch,
    require_space,
    sha256_file,
)
from manicap.core.progress import Tracker
from manicap.core.sealed import read_sealed, write_sealed
from manicap.images.dataset import ImageDataset, ImageRows, Split
from manicap.images.decoding import decode, decode_in_order
from manicap.images.manifest import hash_files

SUFFIXES = (".png", ".jpg", ".jpeg")
CACHE = ".manicap"
_FORMAT = 2
_WHAT, _REMEDY = "description of decoded images", "they are decoded again"


def open_folder(directory: Path, split: Split, *, download: bool = True, quiet: bool = False) -> ImageDataset:
    """`pretrain` and `train` are the same images; all splits share the class names, mean and deviation of `train`."""
    del download  # there is nothing to download
    train = _listing(directory, "train")
    listing = train if split != "test" else _listing(directory, "test")
    strangers = sorted(set(listing.class_names) - set(train.class_names))
    if strangers:
        raise UserError(f"{listing.root} has classes that train lacks: {', '.join(strangers)}")
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


def is_decoded(directory: Path) -> bool:
    """Whether the folder has been opened before, so that there is something to verify."""
    return (directory / CACHE / "train.json").is_file()


def verify_folder(directory: Path) -> list[str]:
    """Hash the decoded arrays and the image files again; return one sentence per file that has changed."""
    faults = []
    for description in sorted((directory / CACHE).glob("*.json")):
        array, hashes = description.with_suffix(".npy"), description.with_suffix(".sha256")
        try:
            info = read_sealed(description, _WHAT, _REMEDY)
            if not array.is_file() or sha256_file(array) != info["sha256"]:
                faults.append(f"{CACHE}/{array.name} has changed; it will be decoded again at the next use")
            if not hashes.is_file() or sha256_file(hashes) != info["hashes_sha256"]:
                faults.append(f"{CACHE}/{hashes.name} has changed")
                continue
            faults += _changed_pictures(directory / info["root"], hashes)
        except (UserError, KeyError):
            faults.append(f"{CACHE}/{description.name} is damaged; the images will be decoded again at the next use")
    return faults


def _changed_pictures(root: Path, hashes: Path) -> list[str]:
    expected = {name: sha256 for sha256, name in (line.split("  ", 1) for line in hashes.read_text().splitlines())}
    present = [name for name in expected if (root / name).is_file()]
    found = hash_files(root, present)
    faults = [f"{root / name} is missing" for name in expected if name not in found]
    return faults + [
        f"{root / name} has changed since it was decoded" for name in present if found[name] != expected[name]
    ]


@dataclass(frozen=True)
class _Listing:
    """The image files under a split's folder, in order."""

    split: str
    root: Path
    paths: tuple[Path, ...]

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(sorted({path.parent.name for path in self.paths}))

    @property
    def names(self) -> list[str]:
        return [path.relative_to(self.root).as_posix() for path in self.paths]

    def digest(self) -> str:
        """Identifies the files and their stamps."""
        entries = [[name, file_stamp(path)] for name, path in zip(self.names, self.paths, strict=True)]
        return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _listing(directory: Path, split: str) -> _Listing:
    root = directory / split
    if split == "train" and not root.is_dir():
        root = directory
    paths = sorted(path for path in root.glob("[!.]*/*") if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise UserError(
            f"there are no images {root}/<class>/*.png (jpg, jpeg)"
            + ("; a test split requires a folder 'test' beside 'train'" if split == "test" else "")
        )
    for path in paths:
        _require_file(path)
    return _Listing(split, root, tuple(paths))


def _require_file(path: Path) -> None:
    """A regular file, or a link to one, whose name can be written down."""
    try:
        str(path).encode()
        if "\n" in path.name or "\n" in path.parent.name:
            raise UserError(f"the name of {str(path)!r} contains a line break; rename it")
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path} is not a regular file; remove it")
    except UnicodeEncodeError:
        raise UserError(f"the name of {str(path)!r} is not UTF-8; rename it") from None
    except OSError as error:  # a broken or circular link
        raise UserError(f"{path} cannot be read ({error.strerror}); repair or remove it") from None


def _array_path(directory: Path, listing: _Listing) -> Path:
    return directory / CACHE / f"{listing.split}.npy"


def _decoded(directory: Path, listing: _Listing, quiet: bool) -> dict[str, Any]:
    """The contents of the JSON file beside the array, after decoding the images if necessary."""
    array, digest = _array_path(directory, listing), listing.digest()
    info = _read_info(array, digest)
    if info is not None:
        return info
    tracker = Tracker("", 0, quiet=quiet)
    try:
        with exclusive_lock(array.parent / ".lock", lambda: tracker.say(f"waiting for another process in {directory}")):
            info = _read_info(array, digest)
            if info is not None:
                return info
            remove_scratch(array.parent)
            return _decode_all(array, listing, digest, quiet)
    except PermissionError:
        raise UserError(
            f"decoded images are kept in {array.parent}, which cannot be written: copy the folder"
        ) from None
    except OSError as error:
        raise Failure(f"decoded images cannot be written to {array.parent}: {error.strerror}") from error


def _read_info(array: Path, digest: str) -> dict[str, Any] | None:
    """None if the images must be decoded."""
    try:
        info = read_sealed(array.with_suffix(".json"), _WHAT, _REMEDY)
        stamp = file_stamp(array)
    except (OSError, UserError):
        return None
    if info["format"] != _FORMAT or info["listing"] != digest:
        return None
    if info["stamp"] != stamp and sha256_file(array) != info["sha256"]:
        return None
    return info


def _decode_all(array: Path, listing: _Listing, digest: str, quiet: bool) -> dict[str, Any]:
    first = decode(listing.paths[0])
    shape = (len(listing.paths), *first.shape)
    require_space(array.parent, shape[0] * first.nbytes, f"the decoded images of {listing.root}")
    sums, squares, num_pixels = np.zeros(3), np.zeros(3), shape[0] * shape[2] * shape[3]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    content, hashes = hashlib.sha256(header.getvalue()), []
    with (
        atomic_file(array) as file,
        Tracker(f"decoding {listing.root}", shape[0], unit="images", quiet=quiet) as tracker,
    ):
        file.write(header.getvalue())
        for path, (image, sha256) in zip(listing.paths, decode_in_order(listing.paths), strict=True):
            if image.shape != first.shape:
                raise UserError(
                    f"{path} is {_size(image.shape)} and {listing.paths[0]} is {_size(first.shape)}:"
                    " all images must have one size; resize them first"
                )
            pixels = image.tobytes()
            file.write(pixels)
            content.update(pixels)
            hashes.append(sha256)
            values = image.reshape(3, -1) / 255
            sums, squares = sums + values.sum(1), squares + (values**2).sum(1)
            tracker.advance()
    mean = sums / num_pixels
    lines = "".join(f"{sha256}  {name}\n" for sha256, name in zip(hashes, listing.names, strict=True)).encode()
    atomic_write(array.with_suffix(".sha256"), lines)
    info = {
        "format": _FORMAT,
        "root": "." if listing.root == array.parent.parent else listing.root.name,
        "listing": digest,
        "shape": list(shape),
        "sha256": content.hexdigest(),
        "hashes_sha256": hashlib.sha256(lines).hexdigest(),
        "stamp": file_stamp(array),
        "mean": mean.tolist(),
        "std": np.sqrt(np.maximum(squares / num_pixels - mean**2, 1e-12)).tolist(),
    }
    write_sealed(array.with_suffix(".json"), info)
    return info


def _size(shape: Any) -> str:
    return f"{shape[-1]} x {shape[-2]}"
