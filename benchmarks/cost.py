"""What a command uses: processor time, memory, and the files that it writes."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Cost:
    """What one process and those that it started used."""

    cpu: float
    """Seconds, user and system, of all processes that have ended."""
    wall: float
    memory: int
    """Bytes: peak resident memory of the largest of these processes."""
    output: str


class TooLong(RuntimeError):
    """A command was ended because it ran longer than its time limit."""


def measure(command: Sequence[str | Path], timeout: float = 900, folder: Path = CHECKOUT) -> Cost:
    """Run `command` in `folder` once and return its cost; its children's included, once they have ended.

    A process inherits the peak memory of the one that starts it, so a caller should be small.

    Raises:
        TooLong: it ran for more than `timeout` seconds.
        RuntimeError: its exit code is not 0.
    """
    began = time.perf_counter()
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, cwd=folder, stdout=output, stderr=errors,
                                   env=_environment())  # fmt: skip
        end, ended = time.monotonic() + timeout, False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if not ended and time.monotonic() > end:
                process.kill()
                ended = True
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        text, said = (_text(file) for file in (output, errors))
    if ended:
        raise TooLong(f"{' '.join(words)}: longer than {timeout:.0f} s")
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {process.returncode}: {said.strip()[-500:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss * 1024, text)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _environment() -> dict[str, str]:
    """Keep compiled modules, as users do: the first run of each command would pay for all others."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = str(Path(tempfile.gettempdir()) / f"tiercel-bench-compiled-{os.getuid()}")
    return {"USER": "bench", "PYTHONPYCACHEPREFIX": compiled, **kept}


#: A file's size in bytes and time of modification in nanoseconds, by its path.
Files = dict[str, tuple[int, int]]


def files_in(folders: Iterable[Path]) -> Files:
    """Return size and time of modification of every file and folder below these folders."""
    found: Files = {}
    pending = [str(folder) for folder in folders]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    known = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        found[entry.path] = 0, 0  # counted once, when it is new
                    else:
                        found[entry.path] = known.st_size, known.st_mtime_ns
        except FileNotFoundError:
            continue
    return found


def written(before: Files, after: Files) -> tuple[int, int]:
    """Return how many files and folders are new or changed, and how many bytes they hold."""
    new = [known[0] for path, known in after.items() if before.get(path) != known]
    return len(new), sum(new)
