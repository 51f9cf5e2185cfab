"""The mount of one node, for a run on several.

``python -m tiercel.layers.fairshare.reach begin ADDRESS FOLDER TICKET``, and ``end FOLDER``: a launcher
starts them on each node of a run.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tiercel.errors import UserError
from tiercel.launchers.answers import say
from tiercel.layers.fairshare import namespace
from tiercel.layers.fairshare.mounting import choose
from tiercel.layers.fairshare.programs import required_programs

_WITHIN_S = 20.0


def begin(address: str, folder: Path, ticket: str) -> None:
    """Mount, by a process that stays until :func:`end`, or until the server has gone."""
    choose(str(folder), alone=False)
    namespace.take_away_dead(folder)
    folder.mkdir(mode=0o700, exist_ok=True)  # nodes may share the folder in which it is
    if not namespace.is_own(folder):
        raise UserError(f"{folder}: somebody else made it")
    notes = _notes(folder)
    with notes.open("w") as said:
        process = subprocess.Popen(
            [str(required_programs().mount), "--server", address, "--mount", str(folder), "--leave"],
            env={**os.environ, "FAIRSHARE_TICKET": f"@{ticket}", "FAIRSHARE_PATIENCE": "5"},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    until = time.monotonic() + _WITHIN_S
    while "ready" not in notes.read_text():
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            lines = notes.read_text().strip().splitlines() or ["it is not ready in time"]
            _forget(folder)
            raise UserError(lines[-1].removeprefix("fairshare-mount: "))
        time.sleep(0.02)
    with notes.open("a") as more:
        more.write(f"{process.pid}\n")


def end(folder: Path) -> None:
    """End what :func:`begin` started."""
    with suppress(OSError, ValueError, IndexError):  # it may have ended with its server
        os.kill(int(_notes(folder).read_text().split()[-1]), signal.SIGTERM)
    until = time.monotonic() + _WITHIN_S
    while _is_mounted(folder) and time.monotonic() < until:
        time.sleep(0.02)
    namespace.take_away_dead(folder)
    _forget(folder)


def _is_mounted(folder: Path) -> bool:
    try:
        return folder.is_mount()
    except OSError:
        return True  # its process has ended, or is about to


def _notes(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-{platform.node()}.log")


def _forget(folder: Path) -> None:
    with suppress(OSError):
        _notes(folder).unlink()
        folder.rmdir()


def main(words: list[str]) -> int:
    """Answer; the exit code is 0 also for an error, which the answer names."""
    answer = {"host": platform.node()}
    try:
        if words[0] == "begin":
            begin(words[1], Path(words[2]), words[3])
        else:
            end(Path(words[1]))
    except (OSError, UserError) as error:
        answer["error"] = (
            f"layer fairshare: {answer['host']}: {error}; `options: {{address: NAME}}` names the first node "
            "as the others know it"
        )
    say(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
