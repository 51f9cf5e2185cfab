"""Programs that tiercel starts end with it, however it ends: whoever goes on must not measure beside them.

As ``preexec_fn`` of subprocess: the kernel then sends the child a signal when the thread that started it is
gone, a killed one too (PR_SET_PDEATHSIG, prctl(2)). Only prctl is called there, so that threads do no harm.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import Any

from tiercel.errors import Interrupted

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here, so that a child between fork and exec need not


def killed_with_parent() -> None:
    """In the child: be killed when tiercel is gone. For programs that have nothing to put in order."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def ended_with_parent() -> None:
    """In the child: be asked to end when tiercel is gone. For servers, and programs of the user."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end_with(parent: int) -> None:
    """Let this process be interrupted when `parent`, which started it, is gone.

    Raises Interrupted where that is so already.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise Interrupted


def killed_with(parent: int) -> None:
    """Let this process be killed when `parent`, which forked it, is gone; end where it is so already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def followed(process: subprocess.Popen[Any]) -> int:
    """Wait for a program of the user's that has his terminal; its exit code, as subprocess has it.

    Ctrl-C reaches it by itself, and what asks tiercel to end is passed on: when it ends is its own to say,
    since it may have something to save.
    """
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
        except Interrupted:
            process.terminate()


def ending(code: int) -> str:
    """Return in words how a process ended, by its exit code (negative: the number of a signal)."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}{' (killed, or out of memory)' if name == 'SIGKILL' else ''}"
