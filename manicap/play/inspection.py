"""Whether a store is still as it was written: it is opened if so, otherwise each fault is reported with its file.

The sealed manifest holds the size and sha256 of every file. Sizes and shapes are compared at every open. Contents are
hashed at the first open and whenever a file has been touched since; `manicap data verify` always hashes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from manicap.core.arrays import NOT_AN_ARRAY
from manicap.core.errors import UserError
from manicap.core.sealed import read_sealed
from manicap.play.integrity import MANIFEST, changed_files, content_faults, size_fault


class NewerFormat(UserError):
    """No damage: another version wrote it."""


class OtherKind(UserError):
    """No damage: a store of something else."""


KINDS = {"game": "a game", "env": "an environment"}
"""What a store is of, by the field of its config that names it."""


class StoreOnDisk(Protocol):
    path: Path
    manifest: dict[str, Any]

    def __len__(self) -> int: ...

    @property
    def files(self) -> tuple[str, ...]: ...


AnyStore = TypeVar("AnyStore", bound=StoreOnDisk)
Shapes = Mapping[str, tuple[np.dtype[Any], tuple[int | None, ...]]]
"""Type and shape of arrays by file; an axis of any length is None."""


@dataclass(frozen=True)
class Rules(Generic[AnyStore]):
    """What distinguishes a kind of store."""

    subject_field: str
    """Of `KINDS`."""
    read: Callable[[Path, dict[str, Any]], AnyStore]
    """From a directory and its manifest; a KeyError, TypeError or ValueError if that does not describe a store."""
    array_faults: Callable[[AnyStore], list[str]]
    """What is wrong with arrays whose bytes are as in the manifest."""
    remedy: str
    """`collect it again`"""
    sliced_rows: Callable[[AnyStore], int | None] = len
    """Rows that are hashed in slices; None if slices are not of rows."""

    def open(self, path: Path) -> AnyStore:
        """The store, or a `UserError` that names the file that is missing, truncated or changed."""
        store, faults = self._inspect(path, always_hash=False)
        if faults or store is None:
            raise UserError(
                f"{path} is not a sound store: {'; '.join(faults)}; remove it with 'manicap data remove {path}'"
                f" and {self.remedy}"
            )
        return store

    def verify(self, path: Path) -> list[str]:
        """Hash every file again; return the faults found, each naming its file (empty if the store is sound)."""
        try:
            return self._inspect(path, always_hash=True)[1]
        except (NewerFormat, OtherKind) as error:
            return [str(error)]

    def _inspect(self, path: Path, always_hash: bool) -> tuple[AnyStore | None, list[str]]:
        if not path.is_dir():
            return None, [f"there is no directory {path}"]
        try:
            manifest = read_sealed(path / MANIFEST, "manifest", remedy=self.remedy)
            self._require_kind(manifest, path)
            store = self.read(path, manifest)
            check_entries(manifest, store.files)
        except (NewerFormat, OtherKind):
            raise
        except (KeyError, TypeError, ValueError, UserError):  # all mean damage: a sealed manifest has these keys
            return None, [f"{MANIFEST} is {'damaged' if (path / MANIFEST).exists() else 'missing'}"]
        expected = {name: manifest["files"][name] for name in store.files}
        faults = [fault for name, entry in expected.items() if (fault := size_fault(path / name, entry["bytes"]))]
        if faults:
            return None, faults
        num_rows = self.sliced_rows(store)
        faults = content_faults(path, store.files, always_hash, lambda: changed_files(path, expected, num_rows))
        return store, faults or self.array_faults(store)

    def _require_kind(self, manifest: Mapping[str, Any], path: Path) -> None:
        other = next((kind for field, kind in KINDS.items() if field in manifest["config"]), None)
        if other is not None and self.subject_field not in manifest["config"]:
            raise OtherKind(
                f"{path} is a store of {other}, and one of {KINDS[self.subject_field]} is needed; 'manicap data list'"
                " shows which there are"
            )


def require_format(manifest: Mapping[str, Any], place: Path | str, newest: int) -> None:
    found = manifest["format"]
    if isinstance(found, int) and found > newest:
        raise NewerFormat(f"{place} has format {found}, and this manicap reads up to {newest}: upgrade manicap")


def check_entries(manifest: Mapping[str, Any], files: Iterable[str]) -> None:
    """A KeyError, TypeError or ValueError if the manifest does not say what it should of each file, and the counts."""
    for name in files:
        entry = manifest["files"][name]
        _ = int(entry["bytes"]), [(int(start), int(stop), str(digest)) for start, stop, digest in entry["slices"]]
    _ = [int(manifest["counts"][name]) for name in ("frames", "episodes")]


def shape_faults(store: StoreOnDisk, shapes: Shapes) -> list[str]:
    """Those of the store's files that are not arrays of these types and shapes."""
    faults = []
    for name in (each for each in store.files if each in shapes):
        dtype, shape = shapes[name]
        try:
            array = np.load(store.path / name, mmap_mode="r")
        except NOT_AN_ARRAY as error:
            faults.append(f"{name} is not an array ({error})")
            continue
        same = len(array.shape) == len(shape) and all(n in (m, None) for n, m in zip(shape, array.shape, strict=True))
        if array.dtype != dtype or not same:
            faults.append(f"{name} holds {array.dtype} {array.shape}, expected {dtype} {shape}")
    return faults


def follow_one_another(starts: NDArray[Any], lengths: NDArray[Any], total: int) -> bool:
    """Whether pieces begin where the one before ends, the first at 0, and the last one ends at `total`."""
    ends = np.cumsum(lengths)
    return np.array_equal(starts, np.r_[0, ends[:-1]]) and bool(ends[-1] == total)
