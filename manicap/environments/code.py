"""Which code a store was recorded with: hashes of the files in which its functions are defined.

Changes in what these files import are not detected.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manicap.core.files import sha256_file
from manicap.core.registry import FILES, allowed_plugins
from manicap.environments.config import LOCAL, RecordConfig
from manicap.environments.making import OwnFunctions

FUNCTIONS = ("env", "labels", "policy")
"""Fields of a recording that may name a function."""


def code_hashes(config: RecordConfig, own: OwnFunctions) -> dict[str, str]:
    """By the name of each function whose file is known."""
    files = {
        str(getattr(config, field)): _file_of(getattr(own, field), getattr(config, field) or "") for field in FUNCTIONS
    }
    return {name: sha256_file(file) for name, file in files.items() if file is not None and file.is_file()}


def say_if_changed(path: Path, recorded: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Warn of a store that other code would perhaps record otherwise. It is used all the same: nothing is lost."""
    changed = [name for name, found in now.items() if recorded.get(name, found) != found]
    if changed:
        print(
            f"warning: the code of {', '.join(changed)} has changed since {path} was recorded; if what it shows or"
            f" labels has changed, remove the store and record it again: manicap data remove {path}",
            file=sys.stderr,
        )


def _file_of(function: Callable[..., Any] | None, name: str) -> Path | None:
    if function is not None:
        try:
            found = inspect.getsourcefile(function)
        except TypeError:  # an object that can be called
            found = None
        return None if found is None else Path(found)
    module = name.partition(":")[0]
    if ":" not in name or name.startswith((LOCAL, *FILES)):
        return None
    if module in sys.modules:
        place = getattr(sys.modules[module], "__file__", None)
    elif name in allowed_plugins():  # its package may be imported
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            return None
        place = None if spec is None else spec.origin
    else:
        return None
    return None if place is None else Path(place)
