"""Runs a program with copies mounted over its own folders, in a mount namespace that ends with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from tiercel.placement import stage

_STAGE = str(Path(stage.__file__))
#: What a kernel or a container says when it forbids user namespaces: file, value, words.
_SETTINGS = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns is 1",
    ),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
    ("/proc/sys/user/max_mnt_namespaces", "0", "user.max_mnt_namespaces is 0"),
)


@dataclass(frozen=True)
class Run:
    """One run of a program. Times in seconds."""

    seconds: float
    code: int | None
    """Exit code, negative for a signal; None: it was ended after its time limit."""
    left: tuple[str, ...]
    """Names of the processes that it left behind, which were ended."""
    failed: str
    """Why it could not be started; empty where it was."""
    queued: float
    """Of the seconds, those that its main thread waited for a processor."""


def run(
    argv: Sequence[str],
    binds: Sequence[tuple[str, str]] | None,
    cwd: str,
    *,
    timeout: float | None = None,
    traced: bool = False,
    streams: Mapping[str, int | IO[bytes] | None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run `argv` in `cwd` with each (copy, folder) of `binds` mounted over the folder; None: no namespace.

    `streams`: stdin, stdout, stderr of the program. Ctrl-C ends the program and all that it started.
    """
    order = {
        "argv": list(argv),
        "binds": None if binds is None else list(binds),
        "cwd": cwd,
        "timeout": timeout,
        "traced": traced,
    }
    orders, ours = os.pipe()
    answers, theirs = os.pipe()
    command = [sys.executable, "-I", "-S", "-B", _STAGE, "supervised", str(orders), str(theirs)]
    try:
        process = subprocess.Popen(
            command,
            pass_fds=(orders, theirs),
            env={**os.environ, **(environment or {})},
            **(streams or {}),
        )  # type: ignore[call-overload]
    finally:
        os.close(orders)
        os.close(theirs)
    try:
        with os.fdopen(answers, encoding="utf-8") as pipe:
            with os.fdopen(ours, "w", encoding="utf-8", errors="surrogateescape") as to:
                json.dump(order, to)
            said = pipe.read()
        process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if not said:
        return Run(0.0, None, (), "the process that watches it was ended", 0.0)
    answer = json.loads(said)
    code = None if answer["timed_out"] else answer["code"]
    return Run(answer["seconds"], code, tuple(answer["left"]), answer["failed"], answer["queued"])


@contextmanager
def guarded() -> Iterator[Callable[[Path], None]]:
    """Yield a function that takes folders to remove when tiercel ends, even if it is killed.

    Another process does that, in a session of its own: a closed terminal does not end it.
    """
    command = [sys.executable, "-I", "-S", "-B", _STAGE, "guard"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
        stdin = process.stdin
        assert stdin is not None

        def remove_at_end(folder: Path) -> None:
            stdin.write(os.fsencode(folder) + b"\0")

        yield remove_at_end


@cache
def no_isolation() -> str:
    """Return why programs cannot get mounts of their own here; empty where they can."""
    done = run(["true"], [("/", "/")] if os.geteuid() == 0 else [("/tmp", "/tmp")], "/")
    if not done.failed and done.code == 0:
        return ""
    for name, value, words in _SETTINGS:
        with suppress(OSError):
            if Path(name).read_text().strip() == value:
                return f"this machine forbids mount namespaces ({words})"
    return f"this machine forbids mount namespaces ({done.failed or 'a container may'})"


def rank_command(argv: Sequence[str], binds: Sequence[tuple[str, str]], cwd: str) -> list[str]:
    """Return the command that each process of a parallel program runs: it gets the mounts on its own node."""
    return [sys.executable, "-I", "-S", "-B", _STAGE, "enter", json.dumps(list(binds)), cwd, *argv]
