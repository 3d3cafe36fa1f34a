"""Things chosen by name: methods, regularizers, probes, encoders and domains, ours and those of other packages.

    METHODS = Registry("method", Method, {"st-dim": STDIM, ...})
    METHODS["st-dim"]
    METHODS["my_package.methods:MyMethod"]      # if the caller has named it: `allow_plugins`

A package registers a thing under a short name with an entry point in the group `manicap.methods` (regularizers,
probes, encoders, domains). Without one, it is named by its import path. A path is imported only if the caller named it
in this process: a config, a run or an encoder from elsewhere never decides what is imported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from manicap.core.errors import UserError, unknown_choice

Thing = TypeVar("Thing")

_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w./-]*")  # gymnasium's names have dashes: package:Name-v0
FILES = ("actions:", "sb3:")
"""Begin the name of a file, not of a module: a policy that is read, or unpickled."""
_allowed: set[str] = set()


def is_plugin(name: str) -> bool:
    """Whether a name is an import path, `package.module:Name`."""
    return ":" in name


def could_be_plugin(name: str) -> bool:
    """Whether a text has the form of an import path, as the path of a file has not."""
    return _PATH.fullmatch(name) is not None


def allow_plugins(names: Iterable[str]) -> None:
    """Allow these paths, which the caller has named, to be imported on demand. Other names are ignored."""
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"a plug-in is named by its import path, such as 'package.module:Name', got {name!r}")
        if not is_plugin(name):
            continue
        if not name.startswith(FILES) and not _PATH.fullmatch(name):
            raise UserError(f"a plug-in must be given as package.module:Name, got {name!r}")
        _allowed.add(name)


def allowed_plugins() -> tuple[str, ...]:
    """The import paths named so far, to pass on to new processes."""
    return tuple(sorted(_allowed))


def import_plugin(path: str, what: str) -> Any:
    """What an import path names, if the caller has named it in this process."""
    require_allowed(path, what)
    return _load(path)


def require_allowed(path: str, what: str) -> None:
    if path not in _allowed:
        raise UserError(
            f"the {what} {path} is not part of manicap, and a file cannot decide what is imported;"
            f" name it yourself (--plugin {path}), or install a package that registers it"
        )


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping from names to things, ours and those of entry points. Loads a thing on first access."""

    def __init__(self, what: str, kind: type, own: Mapping[str, Thing | str]) -> None:
        self.what, self.group = what, f"manicap.{what}s"
        self.kind = kind
        """The class that a thing of another package must be an instance or a subclass of."""
        self._own = dict(own)

    def __getitem__(self, name: str) -> Thing:
        if name in self._own:
            found = self._own[name]
            if isinstance(found, str):  # ours by path too, loaded on first use
                found = self._own[name] = cast(Thing, _load(found))
            return found
        if is_plugin(name):
            require_allowed(name, self.what)
            return self._checked(name, name)
        if name in _entry_points(self.group):
            return self._checked(name, _entry_points(self.group)[name].value)
        raise unknown_choice(self.what, name, self)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **_entry_points(self.group)})

    def __len__(self) -> int:
        return len({**self._own, **_entry_points(self.group)})

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._own or name in _entry_points(self.group) or name in _allowed)

    def _checked(self, name: str, path: str) -> Thing:
        found = _load(path)
        if not (isinstance(found, self.kind) or (isinstance(found, type) and issubclass(found, self.kind))):
            raise UserError(f"{name} is not a {self.what}: {found!r} is not a {self.kind.__name__}")
        return cast(Thing, found)


@dataclass(frozen=True)
class Known:
    """Metadata of `Annotated` for a field that names a thing in a registry."""

    registry: "Registry[Any]"

    def problems(self, value: str) -> list[str]:
        """Why there is no such thing: a typo, or a plug-in that was not named or installed."""
        try:
            self.registry[value]
        except UserError as error:
            return [str(error)]
        return []


@cache
def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        hint = "; is its package installed?" if error.name and module.startswith(error.name) else ""
        raise UserError(f"cannot import {path}: {error}{hint}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            public = [each for each in dir(found) if not each.startswith("_")]
            raise UserError(f"cannot import {path}: {unknown_choice('name', part, public)}")
        found = getattr(found, part)
    return found


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}
