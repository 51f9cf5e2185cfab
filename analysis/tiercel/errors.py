"""The exceptions that tiercel raises on purpose.

A :class:`UserError` is something the user can mend. It prints as one line that names
the file, the key or the run, and the command ends with exit code 2. Everything else
that escapes is a defect of tiercel and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake in what the user wrote or in what the machine offers; one line, exit code 2."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class RunFailed(Exception):
    """One run did not give numbers; it is recorded with this reason and the study goes on."""


class Interrupted(BaseException):
    """SIGTERM from a scheduler or a user: like KeyboardInterrupt, it unwinds and cleans up."""


def one_line(text: str) -> str:
    """Return `text` with control characters escaped, so that a path with a newline stays on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def suggest(word: str, allowed: Iterable[str]) -> str:
    """Return a sentence part: the allowed words, and the nearest one first where there is one."""
    words = sorted(allowed)
    spelt = {each.casefold(): each for each in words}
    near = get_close_matches(word.casefold(), spelt, n=1)
    listed = ", ".join(words) if words else "none"
    return f"did you mean {spelt[near[0]]}? (allowed: {listed})" if near else f"allowed: {listed}"
