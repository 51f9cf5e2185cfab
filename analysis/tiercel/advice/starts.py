"""Whether the kernel can start a program, asked without running an instruction of it.

A tracer that cannot start its program ends like a program that failed: with code 1, and a trace of nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from tiercel.errors import UserError

_PTRACE_TRACEME = 0


def must_start(path: Path, name: str) -> None:
    """UserError, with the kernel's reason, for a program that it does not start: of another machine, cut off,
    a script whose interpreter is missing. `name`: as the user wrote it."""
    library = ctypes.CDLL(None)
    child = os.fork()
    if not child:
        code = 0
        try:
            # A traced program stops before its first instruction.
            library.ptrace(_PTRACE_TRACEME, 0, None, None)
            os.execv(path, [name])
        except OSError as error:
            code = error.errno or 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    elif os.WIFEXITED(status) and (code := os.WEXITSTATUS(status)):
        raise UserError(f"{name}: does not start: {os.strerror(code)}")
    elif os.WIFSIGNALED(status):  # as the kernel ends what it had begun to load
        raise UserError(
            f"{name}: does not start: the kernel ends it ({signal.Signals(os.WTERMSIG(status)).name})"
        )
