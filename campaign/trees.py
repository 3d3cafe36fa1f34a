"""What a directory holds, for comparison: every file's bytes but for what may differ from call to call."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

Tree = Mapping[str, str]
"""Path of each file to the sha256 of what is to be compared of it."""

# Patterns of paths, with why something of them is not compared. Everything else is, byte for byte.
NOT_COMPARED = {
    "*.lock": "a lock file is empty, and stays where a call was killed",
    "*/.verified.json": "time stamps of files, by which a store knows that it was hashed",
}
ONLY_PRESENT = {
    "*/checkpoints/*": "a checkpoint holds the seconds that the training has taken, and the JSON beside it its hash",
}
WITHOUT_KEYS = {
    "*/.manicap/*.json": "time stamps of the array beside it, and a hash of those of the images",
    "*/cifar-10-batches-bin/manifest.json": "time stamps of the files beside it",
    "*/result.json": "the seconds that encoding and probing took",
    "*/results/*.json": "the seconds that encoding and probing took",
}
WITHOUT_SECONDS = {"*/report.html": "the seconds that encoding and probing took, as the page says them"}
SECONDS = re.compile(rb"features [\d,.]+ s, probe [\d,.]+ s")
KEYS = ("mtime_ns", "ctime_ns", "listing", "seconds", "checksum")
"""Left out of the files above, with the checksum over them; the rest of the file is compared."""


def copy_tree(source: Path, target: Path) -> None:
    """With time stamps, by which stores and image folders know that nothing has changed."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def read_tree(root: Path) -> Tree:
    found = {}
    for directory, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(directory) / name
            place = str(path.relative_to(root))
            if not _matches(place, NOT_COMPARED):
                found[place] = _digest(path, place)
    return found


def differences(expected: Tree, found: Tree, ignored: frozenset[str] = frozenset()) -> list[str]:
    """A line for every file that is missing, unexpected or different."""
    lines = []
    for place in sorted({*expected, *found} - ignored):
        if place not in found:
            lines.append(f"{place} is missing")
        elif place not in expected:
            lines.append(f"{place} should not be there")
        elif expected[place] != found[place]:
            lines.append(f"{place} differs")
    return lines


def lost(before: Tree, after: Tree, ignored: frozenset[str] = frozenset()) -> list[str]:
    """A line for every file of `before` that is gone or changed."""
    return differences(before, {place: after[place] for place in before if place in after}, ignored)


def changing(before: Tree, after: Tree) -> frozenset[str]:
    """Files that an undisturbed call itself changes or removes, such as the last lines of an interrupted run."""
    return frozenset(place for place in before if after.get(place) != before[place])


def unfinished_logs(tree: Tree) -> frozenset[str]:
    """Logs of interrupted runs: a run that resumes cuts them back to its checkpoint and writes the same lines again."""
    logs = [place for place in tree if place.endswith(("/metrics.jsonl", "/diagnostics.jsonl"))]
    return frozenset(place for place in logs if f"{Path(place).parent}/encoder.json" not in tree)


def size_of(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def _matches(place: str, patterns: Mapping[str, object]) -> bool:
    return any(fnmatch(place, pattern) or fnmatch("/" + place, pattern) for pattern in patterns)


def _digest(path: Path, place: str) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if _matches(place, ONLY_PRESENT):
        return "present"
    if not path.is_file():
        return "special"
    content = path.read_bytes()
    if _matches(place, WITHOUT_KEYS):
        content = _without_keys(content)
    if _matches(place, WITHOUT_SECONDS):
        content = SECONDS.sub(b"", content)
    return hashlib.sha256(content).hexdigest()


def _without_keys(content: bytes) -> bytes:
    """The JSON without `KEYS`, however deep they are; what is no JSON stays as it is."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: cut(item) for name, item in value.items() if name not in KEYS}
        return [cut(item) for item in value] if isinstance(value, list) else value

    try:
        return json.dumps(cut(json.loads(content)), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return content
