"""``tc.advise``: run a program on every storage from a cell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tiercel.advice.advise import Options
from tiercel.advice.answer import Advice
from tiercel.advice.ask import ask


def advise(
    program: str | Sequence[str],
    site: str = "local",
    *,
    minutes: float | None = None,
    runs: float = 1.0,
    files: Sequence[str] = (),
    cold: bool | None = None,
    once: bool = False,
    home: str | None = None,
) -> Advice:
    """Run a program several times on every storage of a site, as `tiercel advise` does; return advice.

    `program`: its words, or a line that is split as a shell does; a trace's path gives an estimate. The other
    parameters are those of the command. UserError for what cannot be tried.
    """
    words = shlex.split(program) if isinstance(program, str) else list(program)
    return ask(words, site, Options(minutes, runs, tuple(files), cold), once=once, home=home)
