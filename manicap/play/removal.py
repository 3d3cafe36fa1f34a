"""Delete a store, and nothing else."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from manicap.core.errors import UserError
from manicap.core.files import SCRATCH_SUFFIX
from manicap.core.remote import ORIGIN
from manicap.play.integrity import MANIFEST, STAMPS


def remove_store_directory(path: Path, files: Iterable[str]) -> None:
    """Delete a store that may hold these files. A directory that does not look like one is refused."""
    if not path.is_dir():
        raise UserError(f"there is no store at {path}")
    if path.is_symlink():
        raise UserError(f"{path} is a link to {path.resolve()}: remove that store, then the link")
    own = {*files, MANIFEST}
    names = {item.name for item in path.iterdir() if item.suffix != SCRATCH_SUFFIX}
    strangers = names - {*own, STAMPS, ORIGIN}
    if strangers or not names.intersection(own):
        held = ", ".join(sorted(strangers)[:5]) or "no file of a store"
        raise UserError(f"{path} does not look like a store (it holds {held}); not removed")
    shutil.rmtree(path)
