"""Frames recorded elsewhere: an .npz or HDF5 file, or a folder of images with a table.

    frames      uint8 [N, H, W] or [N, H, W, 3]         in a folder: frames/*.png in the order of names
    episode     int [N]; rows of an episode follow one another
    label_NAME, or NAME in the group `labels`: [N]      in a folder: the columns of labels.csv, one line per frame
    actions     int [N] or float [N, A], optional       in a folder: the column `action`
    rewards     float [N], optional                     in a folder: the column `reward`

Frames are read one after the other, so memory does not grow with their number. Other arrays are not read. Nothing is
unpickled.
"""

import csv
import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError
from manicap.core.files import sha256_file
from manicap.core.reading import reason

GROUP, PREFIX = "labels/", "label_"
ARRAYS = ("episode", "actions", "rewards")
ENDINGS = (".npz", ".h5", ".hdf5")
CHUNK_ROWS = 128
DAMAGE = (OSError, RuntimeError, KeyError, zipfile.BadZipFile, zlib.error, *NOT_AN_ARRAY)
"""What reading a damaged file raises."""
TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Source:
    """What a file holds, checked only for presence."""

    path: Path
    num_frames: int
    read_frames: Callable[[], Iterator[NDArray[Any]]]
    arrays: dict[str, NDArray[Any]]
    """By name: `episode`, `actions`, `rewards`, and those of `labels`."""
    labels: dict[str, NDArray[Any]]


def open_source(path: Path) -> Source:
    if path.is_dir():
        return _open_folder(path)
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"{path} is neither a folder nor ends in {', '.join(ENDINGS)}")
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    with _readable(path):
        source = _open_npz(path) if path.suffix.lower() == ".npz" else _open_hdf5(path)

    def read_frames() -> Iterator[NDArray[Any]]:
        with _readable(path):
            yield from source.read_frames()

    return replace(source, read_frames=read_frames)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Reports damage, which may show at any row, in one sentence."""
    try:
        yield
    except UserError:
        raise
    except DAMAGE as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None


def source_sha256(path: Path) -> str:
    """The hash of a file, or of all files of a folder with their names."""
    if not path.is_dir():
        return sha256_file(path)
    digest = hashlib.sha256()
    for file in (*_images(path), path / "labels.csv"):
        digest.update(f"{file.name}\0{sha256_file(file)}\n".encode())
    return digest.hexdigest()


def _open_npz(path: Path) -> Source:
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path} is not an .npz file, or it is damaged: write it with numpy.savez")
    with np.load(path, allow_pickle=False) as archive:
        names = [name for name in archive.files if name != "frames"]
        if "frames" not in archive.files:
            raise UserError(f"{path} has no array 'frames'; it has: {', '.join(names) or 'nothing'}")
        arrays = {name: archive[name] for name in filter(_is_used, names)}
    with zipfile.ZipFile(path) as archive, archive.open("frames.npy") as member:
        shape, in_columns, _ = _header(member)
    if not shape:
        raise UserError(f"frames of {path} is a single value, not [N, H, W] or [N, H, W, 3]")

    def read_frames() -> Iterator[NDArray[Any]]:
        if in_columns:
            with np.load(path, allow_pickle=False) as archive:
                yield from archive["frames"]
            return
        with zipfile.ZipFile(path) as archive, archive.open("frames.npy") as member:
            (_, *frame_shape), _, dtype = _header(member)
            size = dtype.itemsize * int(np.prod(frame_shape, dtype=np.int64))
            for _ in range(shape[0]):
                yield np.frombuffer(member.read(size), dtype).reshape(frame_shape)

    return Source(path, shape[0], read_frames, *_sorted(arrays, path))


def _header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of an .npy file, which is then read from its first row."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(member)
    if dtype.hasobject:
        raise UserError("frames are Python objects, which are not loaded")
    return shape, in_columns, dtype


def _open_hdf5(path: Path) -> Source:
    try:
        import h5py
    except ImportError as error:
        raise UserError(f"{path} needs h5py: pip install 'manicap[hdf5]' ({error})") from None
    names, found = list[str](), dict[str, NDArray[Any]]()

    def add(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        names.append(name)
        if _is_used(name):
            found[name] = item.asstr()[()] if h5py.check_string_dtype(item.dtype) else item[()]

    with h5py.File(path, "r") as file:
        file.visititems(add)
        if not isinstance(file.get("frames"), h5py.Dataset) or not file["frames"].ndim:
            raise UserError(f"{path} has no dataset 'frames' of rows; it has: {', '.join(names) or 'nothing'}")
        num_frames = len(file["frames"])

    def read_frames() -> Iterator[NDArray[Any]]:
        with h5py.File(path, "r") as file:
            for start in range(0, num_frames, CHUNK_ROWS):
                yield from file["frames"][start : start + CHUNK_ROWS]

    return Source(path, num_frames, read_frames, *_sorted(found, path))


def _is_used(name: str) -> bool:
    return name in ARRAYS or name.startswith((GROUP, PREFIX))


def _sorted(found: dict[str, NDArray[Any]], path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Other arrays, and labels by their own names."""
    given = dict[str, str]()
    for name in found:
        own = name.removeprefix(GROUP).removeprefix(PREFIX)
        if name not in ARRAYS and given.setdefault(own, name) != name:
            raise UserError(f"{path} has the label {own!r} twice, as {given[own]} and as {name}: remove one")
    labels = {own: found[name] for own, name in given.items()}
    return {name: found[name] for name in ARRAYS if name in found}, labels


def _open_folder(path: Path) -> Source:
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError(f"images need pillow: pip install 'manicap[images]' ({error})") from None
    images = _images(path)
    if not images:
        raise UserError(f"there are no images in {path / 'frames'}: it needs frames/*.png")

    def read_frames() -> Iterator[NDArray[Any]]:
        for file in images:
            try:
                with Image.open(file) as image:
                    yield np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
            except (OSError, SyntaxError) as error:  # SyntaxError: a damaged PNG
                raise UserError(f"cannot read the image {file}: {reason(error)}") from None

    columns = _read_table(path / "labels.csv")
    known = {"episode": "episode", "action": "actions", "reward": "rewards"}
    arrays = {known[name]: columns.pop(name) for name in list(columns) if name in known}
    return Source(path, len(images), read_frames, arrays, columns)


def _images(path: Path) -> list[Path]:
    return sorted((path / "frames").glob("*.png"))


def _read_table(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            head, *lines = csv.reader(file)
    except OSError as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path} is not a table with a line of names: {reason(error)}") from None
    for number, line in enumerate(lines, 2):
        if len(line) != len(head):
            raise UserError(f"line {number} of {path} has {len(line)} values, and the first line has {len(head)} names")
        if "" in line:
            raise UserError(
                f"line {number} of {path} has no {head[line.index('')]}: a label must have a value everywhere"
            )
    if len({*head}) != len(head):
        raise UserError(f"{path} has two columns of one name: {', '.join(head)}")
    return {name: _typed([line[place] for line in lines]) for place, name in enumerate(head)}


def _typed(words: list[str]) -> NDArray[Any]:
    """Whole numbers, real numbers, truth values or strings, whichever all words of a column can be read as."""
    if all(word.lower() in TRUTH for word in words):
        return np.array([TRUTH[word.lower()] for word in words])
    for kind in (int, float):
        try:
            return np.array([kind(word) for word in words], np.int64 if kind is int else np.float64)
        except (ValueError, OverflowError):
            continue
    return np.array(words)
