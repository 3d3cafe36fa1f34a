"""Files that were whole once stay what they were: sizes at every open, sha256 at the first and when a file was touched.

`manifest.json` beside the files holds, for each, its size, its time stamp and its sha256 when it was first read.
"""

import contextlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from manicap.core.errors import UserError
from manicap.core.files import sha256_file, write_json

MANIFEST = "manifest.json"


def check_files(folder: Path, sizes: Mapping[str, int | None]) -> dict[str, str]:
    """sha256 of each file, or a `UserError` naming every file that is missing, wrongly sized or changed.

    A size of None accepts any.
    """
    faults = [fault for name, size in sizes.items() if (fault := _size_fault(folder / name, size))]
    if faults:
        raise UserError(f"{folder}: {'; '.join(faults)}; remove what is damaged and call again to fetch it")
    known = _read(folder)
    stamps = {name: _stamp(folder / name) for name in sizes}
    unsure = [name for name in sizes if {**known.get(name, {}), "sha256": None} != {**stamps[name], "sha256": None}]
    with ThreadPoolExecutor() as pool:  # hashing releases Python's lock
        found = dict(zip(unsure, pool.map(lambda name: sha256_file(folder / name), unsure), strict=True))
    changed = [name for name in unsure if name in known and known[name]["sha256"] != found[name]]
    if changed:
        raise UserError(
            f"{folder}: the sha256 of {', '.join(changed)} is no longer that in {MANIFEST}; put the original back, or"
            f" remove {folder / MANIFEST} if the change was meant"
        )
    if unsure:
        entries = {**known, **{name: {**stamps[name], "sha256": found[name]} for name in unsure}}
        with contextlib.suppress(OSError):  # a read-only directory: every open hashes
            write_json(folder / MANIFEST, entries)
    return {name: found[name] if name in found else known[name]["sha256"] for name in sizes}


def _size_fault(path: Path, size: int | None) -> str | None:
    if not path.is_file():
        return f"{path.name} is missing"
    if size is not None and path.stat().st_size != size:
        return f"{path.name} has {path.stat().st_size} bytes, expected {size}"
    return None


def _stamp(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns}


def _read(folder: Path) -> dict[str, Any]:
    try:
        entries = json.loads((folder / MANIFEST).read_text())
        return {name: dict(entry) for name, entry in entries.items() if len(entry["sha256"]) == 64}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{folder / MANIFEST} is damaged; remove it, and the files are hashed again") from None
