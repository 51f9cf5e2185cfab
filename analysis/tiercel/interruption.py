"""What interrupts a command unwinds it, whatever it does just then."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from tiercel.errors import Interrupted

#: Until what was dropped is raised again: what Python does meanwhile (a destructor) is over.
_LATER_S = 0.01


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handler of SIGTERM: unwind as at Ctrl-C, so that what was started ends and what was made is removed."""
    raise Interrupted


def unwind_when_interrupted() -> None:
    """Let SIGTERM unwind this process, unless whoever started it has it ignored; it and Ctrl-C are never lost
    from then on."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, interrupt)
    sys.unraisablehook = _raise_later


def _raise_later(dropped: sys.UnraisableHookArgs) -> None:
    """Python drops what is raised in a destructor or in a weak reference's callback, of which each import has
    one: a command that was asked to end at that moment went on to its end."""
    kind = dropped.exc_type
    if not issubclass(kind, Interrupted | KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return

    def again(_number: int, _frame: FrameType | None) -> None:
        raise kind

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _LATER_S)
