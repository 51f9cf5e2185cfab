"""One way to add a thing in one file: a class under ``@registry.register``.

Engines, launchers, trace formats and the like are found by name in such a registry; adding one means writing
its file beside the others, or naming it in a subject (`tiercel.subjects`). Nothing lists the files:
`subjects.fill` imports them when the registry is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from tiercel.errors import UserError, suggest

T = TypeVar("T")


class Registry(Generic[T]):
    """Named classes of one kind; `kind` is the word used in messages.

    `fill` is called before the registry is first asked: it imports what files classes in it.
    """

    def __init__(self, kind: str, fill: Callable[[], object] | None = None) -> None:
        self.kind = kind
        self._fill = fill
        self._classes: dict[str, T] = {}

    def _all(self) -> dict[str, T]:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill()
        return self._classes

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files a class under `name`."""

        def file(cls: T) -> T:
            if name in self._classes:
                raise ValueError(f"{self.kind} {name} is registered twice")
            self._classes[name] = cls
            return cls

        return file

    def get(self, name: str) -> T:
        """Return the class; UserError with the known names otherwise."""
        try:
            return self._all()[name]
        except KeyError:
            raise UserError(f"no {self.kind} named {name!r}: {suggest(name, self._all())}") from None

    def names(self) -> list[str]:
        return sorted(self._all())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._all()
