"""How a side is written: ``WHERE[@DATES][+LAYER][:KEY=VALUE]...``; docs/compare.md is the user's page.

WHERE is a site, a folder with results or an archive of one. What narrows it may come in any order::

    local@2026-11-01            runs that began on that day (UTC)
    local@2026-10..2026-11-15   from the start of the first to the end of the last
    local+fairshare             with that layer; +none without any
    local:study=quick:storage=gpfs1
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tiercel.errors import UserError, suggest

KEYS = ("study", "storage", "layer", "engine", "origin")
_MARK = re.compile(r"@|\+|:([a-z]+)=")
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d)(?::(\d\d))?)?)?)?")


@dataclass(frozen=True)
class Spelling:
    """A side as the user wrote it. `since` and `until`: seconds since the epoch, until is not in it."""

    text: str
    where: str
    since: float | None = None
    until: float | None = None
    study: str | None = None
    storage: str | None = None
    layer: str | None = None
    engine: str | None = None
    origin: str | None = None

    @property
    def narrowing(self) -> tuple[object, ...]:
        """What is taken of `where`."""
        return (self.since, self.until, *(getattr(self, key) for key in KEYS))

    def narrowed(self, key: str, value: str) -> Spelling:
        """Return the side with another narrowing, which its text says, too."""
        mark = "+" if key == "layer" else f":{key}="
        return self._with(key, value, f"{self.text}{mark}{value}")

    def _with(self, key: str, value: str, text: str = "") -> Spelling:
        values: dict[str, Any] = {key: value}
        return replace(self, text=text or self.text, **values)


def read_side(text: str, known: Callable[[str], bool]) -> Spelling:
    """Return what a side's text says; `known` tells whether a word is a place with results.

    The longest beginning that is a place is WHERE, so that a folder may have any name. Raises UserError.
    """
    marks = [m.start() for m in _MARK.finditer(text) if m.start()]
    where = next((w for end in (None, *reversed(marks)) if known(w := text[:end])), None)
    if where is None:
        where = text[: marks[0]] if marks else text
    if not where:
        raise UserError(f"side {text!r}: write a site, a folder with results or an archive first")
    found = Spelling(text, where)
    for mark, value in _parts(text[len(where) :]):
        if mark == "@":
            found = _once(found, text, "@", found.since is None and found.until is None)
            since, until = read_dates(value, text)
            found = replace(found, since=since, until=until)
        elif mark == "+":
            found = replace(found, layer="+".join(filter(None, (found.layer, _said(value, text, "+LAYER")))))
        elif mark in KEYS:
            found = _once(found, text, mark, getattr(found, mark) is None)
            found = found._with(mark, _said(value, text, f":{mark}=NAME"))
        else:
            raise UserError(f"side {text!r}: no key {mark!r}: {suggest(mark, KEYS)}")
    return found


def _parts(rest: str) -> list[tuple[str, str]]:
    marks = list(_MARK.finditer(rest))
    ends = [*(m.start() for m in marks), len(rest)][1:]
    return [(m[1] or m[0], rest[m.end() : end]) for m, end in zip(marks, ends, strict=True)]


def _once(found: Spelling, text: str, mark: str, free: bool) -> Spelling:
    if not free:
        raise UserError(f"side {text!r}: {mark} is written twice")
    return found


def _said(value: str, text: str, form: str) -> str:
    if not value:
        raise UserError(f"side {text!r}: {form}: nothing is named")
    return value


def read_dates(value: str, text: str) -> tuple[float | None, float | None]:
    """Return (since, until) for ``DATE``, ``DATE..DATE``, ``DATE..`` or ``..DATE``; a date may be a year,
    a month, a day, an hour or a minute, and stands for all of it."""
    first, dots, last = value.partition("..")
    if not dots:
        last = first
    since = _span(first, text)[0] if first else None
    until = _span(last, text)[1] if last else None
    if since is None and until is None:
        raise UserError(f"side {text!r}: @ needs a date, for example 2026-11-01 or 2026-11-01..2026-11-07")
    if since is not None and until is not None and until <= since:
        raise UserError(f"side {text!r}: the dates end before they begin")
    return since, until


def _span(word: str, text: str) -> tuple[float, float]:
    match = _DATE.fullmatch(word)
    if not match:
        raise UserError(
            f"side {text!r}: {word!r} is no date: write 2026, 2026-11, 2026-11-01 or 2026-11-01T14:30"
        )
    year, *rest = (int(g) if g else None for g in match.groups())
    month, day, hour, minute = rest
    try:
        begin = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, tzinfo=UTC)
        if month is None:
            end = begin.replace(year=begin.year + 1)
        elif day is None:
            end = (begin + timedelta(days=31)).replace(day=1)
        else:
            step = {"minutes": 1} if minute is not None else {"hours": 1} if hour is not None else {"days": 1}
            end = begin + timedelta(**step)
    except (ValueError, OverflowError):
        raise UserError(f"side {text!r}: {word!r} is no date of the calendar") from None
    return begin.timestamp(), end.timestamp()
