"""Data that is opened once per job, however many of its stages ask for it.

    with opened_once():
        once(("images", path), lambda: open_images(path))     # opened
        once(("images", path), lambda: open_images(path))     # the same object

Outside a job, data is opened, and so verified, on every call.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

Opened = TypeVar("Opened")

_opened: ContextVar[dict[Hashable, Any] | None] = ContextVar("opened", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """A job: what is opened in it stays open until it ends. Nested jobs share what it has opened."""
    if _opened.get() is not None:
        yield
        return
    token = _opened.set({})
    try:
        yield
    finally:
        _opened.reset(token)


def once(key: Hashable, open_it: Callable[[], Opened]) -> Opened:
    """The result of `open_it`, which is called once per job and key."""
    known = _opened.get()
    if known is None:
        return open_it()
    if key not in known:
        known[key] = open_it()
    return cast(Opened, known[key])
