"""Data that is opened once per job, however many of its stages ask for it.

    with opened_once():
        once(("images", path), lambda: open_images(path))     # opened
        once(("images", path), lambda: open_images(path))     # the same object

Outside of a job everything is opened, and so verified, whenever it is asked for.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

Opened = TypeVar("Opened")

_opened: ContextVar[dict[Hashable, Any] | None] = ContextVar("opened", default=None)


@contextmanager
def opened_once() -> Iterator[None]:
    """A job: what is opened in it stays open to its end. Jobs inside of it share what it has opened."""
    if _opened.get() is not None:
        yield
        return
    token = _opened.set({})
    try:
        yield
    finally:
        _opened.reset(token)


def once(key: Hashable, open_it: Callable[[], Opened]) -> Opened:
    """What `open_it` returns, called once per job and key."""
    known = _opened.get()
    if known is None:
        return open_it()
    if key not in known:
        known[key] = open_it()
    return cast(Opened, known[key])
