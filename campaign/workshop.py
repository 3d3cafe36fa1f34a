"""What a call finds and what it leaves when nothing goes wrong: made once, when first asked for."""

import functools
import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaign.calls import CALLS, GRID, IMAGE_GRID, Call
from campaign.child import Request, Strike
from campaign.forking import Ended, ForkServer
from campaign.trees import Tree, copy_tree, read_tree
from tests.atari.old_store import write_small_old_store
from tests.image_folder import write_image_folder
from tests.images.files import CIFAR10, write_cifar10


class Unprepared(Exception):
    """A call that should succeed, undisturbed, did not: nothing can be compared with it."""


@dataclass(frozen=True)
class Reference:
    """A call that was left alone."""

    words: tuple[str, ...]
    """Those of the call, with the paths that its stars stand for."""
    before: Tree
    after: Tree
    ended: Ended
    path: Path
    """What it left."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Files that were there before it and that it read."""
        return tuple(place for place in self.ended.reads if place in self.before)

    @property
    def limit(self) -> float:
        """Seconds after which a call like it is taken to hang: it may share the machine, and be resumed."""
        return 30 + 20 * self.ended.seconds


class Workshop:
    """References of calls, under one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._references: dict[str, Reference | Unprepared] = {}
        self._lock = threading.RLock()

    def reference(self, call: Call, server: ForkServer) -> Reference:
        with self._lock:
            if call.name not in self._references:
                try:
                    self._references[call.name] = self._make(call, server)
                except Unprepared as error:
                    self._references[call.name] = error
            found = self._references[call.name]
            if isinstance(found, Unprepared):
                raise found
            return found

    def lay_out(self, call: Call, target: Path, server: ForkServer) -> None:
        """Put into `target` what the call finds."""
        target.mkdir(parents=True, exist_ok=True)
        for need in call.needs:
            if need in CALLS:
                copy_tree(self.reference(CALLS[need], server).path, target)
            else:
                self._lay_out_fixture(need, target)

    def _make(self, call: Call, server: ForkServer) -> Reference:
        path = self.directory / "references" / call.name.replace(" ", "-")
        self.lay_out(call, path, server)
        before = read_tree(path)
        output = self.directory / "output" / call.name.replace(" ", "-")
        words = expand(call.words, path)
        ended = server.call(Request(words, path, output))
        if ended.code != 0:
            raise Unprepared(f"'{call.name}' ended with code {ended.code}: {ended.stderr.strip()[-2000:]}")
        if call.stop is not None:
            shutil.rmtree(path)
            self.lay_out(call, path, server)
            server.call(Request(words, path, output, strike=Strike(kill_at=int(call.stop * ended.changes))))
        return Reference(words, before, read_tree(path), ended, path)

    def _lay_out_fixture(self, name: str, target: Path) -> None:
        made = self.directory / "fixtures" / name
        with self._lock:
            if not made.exists():
                _FIXTURES[name](made)
        copy_tree(made, target)


def expand(words: Iterable[str], directory: Path) -> tuple[str, ...]:
    """Replace a word with a star by the paths that it matches, as a shell does."""
    found: list[str] = []
    for word in words:
        paths = [path for path in sorted(directory.glob(word)) if not path.name.startswith(".")] if "*" in word else []
        found += [str(path.relative_to(directory)) for path in paths] or [word]
    return tuple(found)


def _pictures(path: Path) -> None:
    write_image_folder(path / "pictures", num_train=12, num_test=4)


def _cifar10(path: Path) -> None:
    write_cifar10(path / "data" / "cifar10")


def _old_store(path: Path) -> None:
    write_small_old_store(path / "data")


def _points(path: Path) -> None:
    path.mkdir(parents=True)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    np.save(path / "points.npy", np.stack([np.cos(angles), np.sin(angles)], 1))


def _text(name: str, content: str, path: Path) -> None:
    path.mkdir(parents=True)
    (path / name).write_text(content)


_FIXTURES: dict[str, Callable[[Path], None]] = {
    "pictures": _pictures,
    "cifar10": _cifar10,
    "points.npy": _points,
    "old store": _old_store,
    "grid.toml": functools.partial(_text, "grid.toml", GRID),
    "images.toml": functools.partial(_text, "images.toml", IMAGE_GRID),
}


def read_small_cifar10() -> None:
    """CIFAR-10 in its own layout with 20 images a file: the published 10,000 would take the time of the trials."""
    from manicap.images import registry
    from manicap.images.cifar10 import open_cifar10

    registry.DATASETS["cifar10"] = functools.partial(open_cifar10, layout=CIFAR10)
