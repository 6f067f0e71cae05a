"""How far long work has come: whoever works says so, whoever listens shows it. Without a listener nothing happens."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int | None], None]
"""Hears what is being done, how much of it is, and how much there is in all, where that is known."""

T = TypeVar("T")

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def say_progress(what: str, done: int = 0, total: int | None = None) -> None:
    """Say what is being done now, and how far it is."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)


def counted(items: Sequence[T], what: str) -> Iterator[T]:
    """The same items, one after the other, which says how many have been worked on."""
    for done, item in enumerate(items):
        say_progress(what, done, len(items))
        yield item


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Whatever is said inside goes to the listener."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)
