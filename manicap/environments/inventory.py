"""The stores of environments in a data directory."""

import json
from pathlib import Path

from manicap.environments.config import FOLDER
from manicap.environments.store import ALL_FILES
from manicap.play.integrity import MANIFEST
from manicap.play.removal import remove_store_directory


def list_environment_stores(data_dir: Path) -> list[Path]:
    """Store directories under `data_dir`, sound or not; incomplete ones are hidden and not listed."""
    return sorted(path for path in (data_dir / FOLDER).glob("*/[!.]*") if path.is_dir())


def is_environment_store(path: Path) -> bool:
    """Whether a directory holds the store of an environment: by its manifest, or if that is damaged by its place."""
    try:
        return "env" in json.loads((path / MANIFEST).read_bytes())["config"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return path.absolute().parent.parent.name == FOLDER


def remove_environment_store(path: Path) -> None:
    """Delete a store. A directory that does not look like one is refused."""
    remove_store_directory(path, ALL_FILES)
