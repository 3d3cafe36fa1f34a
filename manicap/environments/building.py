"""The hidden directory in which a store is built. It keeps what an interrupted recording has completed."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from manicap.core.config import to_dict
from manicap.core.files import remove_scratch, write_json
from manicap.environments.code import FUNCTIONS
from manicap.environments.config import LOCAL, RecordConfig
from manicap.environments.lane_worker import PARTS, finished_path
from manicap.environments.layout import Survey

JOB = "job.json"


def building_path(final: Path) -> Path:
    """Where the store that will be at `final` is built, by the process that holds its lock."""
    return final.parent / f".{final.name}.building"


def open_building(final: Path, config: RecordConfig, found: Survey, code: Mapping[str, str]) -> Path:
    """The directory, empty unless the same recording was interrupted: same config, rows, versions and code.

    It is always empty if a function has no import path: whether its code is the same is not known.
    """
    directory = building_path(final)
    told = {
        "config": to_dict(config),
        "layout": found.layout.as_dict(),
        "versions": found.versions,
        "code": dict(code),
    }
    job = json.loads(json.dumps(told))  # as it will be read back: lists instead of tuples
    if directory.exists() and (_is_local(config) or _read(directory / JOB) != job):
        shutil.rmtree(directory)
    directory.mkdir(exist_ok=True)
    remove_scratch(directory)
    for path in directory.iterdir():
        if not _is_part(path):  # left by a kill after lanes were joined
            path.unlink()
    write_json(directory / JOB, job)
    return directory


def remove_parts(directory: Path) -> None:
    """Leave only the files of the store."""
    for path in directory.iterdir():
        if _is_part(path):
            path.unlink()


def is_finished(directory: Path, lane: int) -> bool:
    """Whether all parts of the lane exist with their recorded sizes."""
    found = _read(finished_path(directory, lane))
    if found is None:
        return False
    paths = {part: directory / f"{part}-{lane}" for part in PARTS}
    return {part: path.stat().st_size if path.is_file() else None for part, path in paths.items()} == found.get("sizes")


def _is_part(path: Path) -> bool:
    return path.name == JOB or "-" in path.name


def _is_local(config: RecordConfig) -> bool:
    return any((getattr(config, field) or "").startswith(LOCAL) for field in FUNCTIONS)


def _read(path: Path) -> dict[str, object] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
