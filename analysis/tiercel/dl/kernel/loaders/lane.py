"""A bounded queue between one thread that makes things and one that takes them."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Lane(Generic[T]):
    """Holds up to `room` things. What went wrong in the maker is raised in the taker."""

    def __init__(self, room: int) -> None:
        self._things: SimpleQueue[object] = SimpleQueue()
        self._room = threading.Semaphore(room)
        self._stopped = False

    def put(self, thing: T) -> bool:
        """Add a thing, waiting for room; False when nobody will take it any more."""
        self._room.acquire()
        if self._stopped:
            return False
        self._things.put(thing)
        return True

    def end(self) -> None:
        """Say that no more will come."""
        self._things.put(_End)

    def fail(self, error: Exception) -> None:
        """Hand an error to the taker."""
        self._things.put(_Failed(error))

    def take(self) -> T:
        """Return the next thing, waiting for it; Ended after the last."""
        thing = self._things.get()
        if thing is _End:
            raise Ended
        if isinstance(thing, _Failed):
            raise thing.error
        self._room.release()
        return cast(T, thing)

    def stop(self) -> None:
        """Let the maker go: nothing will be taken any more."""
        self._stopped = True
        self._room.release()


class Ended(Exception):
    """The maker has no more."""


class _End:
    pass


class _Failed:
    def __init__(self, error: Exception) -> None:
        self.error = error
