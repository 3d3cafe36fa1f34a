"""Runs among the words of a command line."""

import os
from collections.abc import Sequence
from pathlib import Path


def run_dirs_in(words: Sequence[str]) -> list[Path]:
    """Words that are directories of runs. A word may be anything, even too long for a path."""
    found = (word for word in words if not word.startswith("-") and os.path.isfile(os.path.join(word, "config.toml")))
    return [Path(word) for word in found]
