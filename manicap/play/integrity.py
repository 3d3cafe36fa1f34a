"""Whether the files of a store are as its manifest says: their sizes, their hashes in slices of rows, their stamps.

    manifest["files"][name] == {"bytes": 5120, "slices": [[0, 4096, "<sha256>"], [4096, 5120, "<sha256>"]]}

Stamps record which files were found sound, so that they are hashed again only once one has been written to.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from manicap.core.files import file_stamp, remove_scratch, sha256_slice, sync_file, write_json

MANIFEST, STAMPS = "manifest.json", ".verified.json"
SLICE_ROWS = 1024
"""Rows that share a hash, so that damage is located."""

Stamps = dict[str, dict[str, int]]


def file_entry(path: Path, starts: Iterable[int] = ()) -> dict[str, Any]:
    """What a manifest says of a file whose slices, after the first, begin at these bytes."""
    size = path.stat().st_size
    slices = [[*ends, sha256_slice(path, *ends)] for ends in pairwise([0, *starts, size])]
    return {"bytes": size, "slices": slices}


def array_slice_starts(path: Path) -> list[int]:
    """Where every `SLICE_ROWS` rows of an .npy file begin; the first have the header with them."""
    array = np.load(path, mmap_mode="r")
    row_bytes = array.nbytes // max(len(array), 1)
    return [array.offset + row * row_bytes for row in range(SLICE_ROWS, len(array), SLICE_ROWS)]


def size_fault(file: Path, expected: int) -> str | None:
    if not file.is_file():
        return f"{file.name} is missing"
    found = file.stat().st_size
    return None if found == expected else f"{file.name} has {found} bytes, expected {expected}"


def changed_files(path: Path, expected: Mapping[str, Any], num_rows: int | None) -> list[str]:
    """Hash all slices, on all cores; return one sentence per file that differs from the manifest.

    It names rows if the slices are of `SLICE_ROWS` of `num_rows`.
    """
    jobs = [(name, *entry, place) for name in expected for place, entry in enumerate(expected[name]["slices"])]
    with ThreadPoolExecutor() as pool:  # hashing releases the GIL
        found = pool.map(lambda job: sha256_slice(path / job[0], job[1], job[2]), jobs)
        wrong = [job for job, sha256 in zip(jobs, found, strict=True) if sha256 != job[3]]
    sentences: dict[str, str] = {}
    for name, start, stop, _, place in wrong:
        where = f"bytes {start} to {stop}"
        if num_rows is not None and len(expected[name]["slices"]) > 1:
            first = place * SLICE_ROWS
            where += f", rows {first} to {min(first + SLICE_ROWS, num_rows) - 1}"
        sentences.setdefault(name, f"{name} has changed (sha256 of {where} is not as in the manifest)")
    return list(sentences.values())


def content_faults(
    path: Path, files: Iterable[str], always_hash: bool, find_changes: Callable[[], list[str]]
) -> list[str]:
    """What `find_changes` reports, asked only if a file was touched since the last time that all were sound."""
    stamps = file_stamps(path, files)  # before hashing: what is written meanwhile is noticed next time
    if not always_hash and _read_stamps(path) == stamps:
        return []
    faults = find_changes()
    if not faults:
        write_stamps(path, files, stamps)
    return faults


def file_stamps(path: Path, files: Iterable[str]) -> Stamps:
    return {name: file_stamp(path / name) for name in (*files, MANIFEST)}


def _read_stamps(path: Path) -> Any:
    try:
        return json.loads((path / STAMPS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write_stamps(path: Path, files: Iterable[str], stamps: Stamps | None = None) -> None:
    """Record files just verified, once they are on disk. In a read-only directory every open hashes them instead."""
    files = tuple(files)
    try:
        remove_scratch(path)
        for name in (*files, MANIFEST):
            sync_file(path / name)
        write_json(path / STAMPS, file_stamps(path, files) if stamps is None else stamps)
    except OSError:
        return
