"""Checks that files stay unchanged: sizes at every open, sha256 at the first and whenever a file was touched.

The sealed `manifest.json` beside the files holds each file's stamp and its sha256 when it was first read.
"""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.files import file_stamp, sha256_file, sync_file
from manicap.core.sealed import read_sealed, write_sealed

MANIFEST = "manifest.json"


def check_files(folder: Path, sizes: Mapping[str, int | None]) -> dict[str, str]:
    """sha256 of each file, or a `UserError` naming every file that is missing, wrongly sized or changed.

    A size of None accepts any.
    """
    faults = [fault for name, size in sizes.items() if (fault := _size_fault(folder / name, size))]
    if faults:
        raise UserError(f"{folder}: {'; '.join(faults)}; remove what is damaged and try again to fetch it")
    known = _read(folder)
    stamps = {name: file_stamp(folder / name) for name in sizes}
    unsure = [name for name in sizes if known.get(name, {}).get("stamp") != stamps[name]]
    found = hash_files(folder, unsure)
    changed = [name for name in unsure if name in known and known[name]["sha256"] != found[name]]
    if changed:
        raise UserError(
            f"{folder}: the sha256 of {', '.join(changed)} no longer matches {MANIFEST}; restore the original, or"
            f" remove {folder / MANIFEST} if the change was intended"
        )
    if unsure:
        entries = {name: {"stamp": stamps[name], "sha256": found[name]} for name in unsure}
        with contextlib.suppress(OSError):  # in a read-only directory every open hashes
            for name in unsure:
                sync_file(folder / name)
            write_sealed(folder / MANIFEST, {**known, **entries})
    return {name: found[name] if name in found else known[name]["sha256"] for name in sizes}


def verify_files(folder: Path) -> list[str]:
    """Hash every file of the manifest again; return one sentence per file that has changed since it was first read."""
    known = _read(folder)
    present = [name for name in known if (folder / name).is_file()]
    found = hash_files(folder, present)
    faults = [f"{name} is missing" for name in known if name not in found]
    return faults + [
        f"{name} has changed (its sha256 differs from that in {MANIFEST})"
        for name in present
        if found[name] != known[name]["sha256"]
    ]


def hash_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """sha256 of each file, on all cores."""
    with ThreadPoolExecutor() as pool:  # hashing releases the GIL
        return dict(zip(names, pool.map(lambda name: sha256_file(folder / name), names), strict=True))


def _size_fault(path: Path, size: int | None) -> str | None:
    if not path.is_file():
        return f"{path.name} is missing"
    if size is not None and path.stat().st_size != size:
        return f"{path.name} has {path.stat().st_size} bytes, expected {size}"
    return None


def _read(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    return read_sealed(path, "list of hashes", "remove it to hash the files again") if path.exists() else {}
