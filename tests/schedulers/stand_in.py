"""Stands in for a scheduler's programs: notes how it is called, and really runs the jobs, on this machine.

Called bsub, bjobs, bkill, jsrun and flux. STAND_IN names its folder: calls.txt has one call a line, as
JSON; jobs/<id>/ has pid and, once the job has ended, code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path(os.environ["STAND_IN"])


def submit(script: bytes) -> int:
    """Start a job of its own session and return its number."""
    jobs = FOLDER / "jobs"
    jobs.mkdir(exist_ok=True)
    number = len(list(jobs.iterdir())) + 1
    job = jobs / str(number)
    job.mkdir()
    (job / "script").write_bytes(script)
    wrapper = (
        'echo $$ >"$0/pid"; sh "$0/script" >"$0/log" 2>&1; echo $? >"$0/code.new"; mv "$0/code.new" "$0/code"'
    )
    subprocess.Popen(
        ["sh", "-c", wrapper, str(job)], start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return number


def code(number: str) -> int | None:
    """Return how a job ended; None while it runs."""
    try:
        return int((FOLDER / "jobs" / number / "code").read_text())
    except FileNotFoundError:
        return None


def end(numbers: list[str]) -> None:
    for number in numbers:
        job = FOLDER / "jobs" / number
        if code(number) is None:
            with suppress(ProcessLookupError):
                os.killpg(int((job / "pid").read_text()), signal.SIGTERM)
            (job / "code").write_text("143")


def launch(processes: int, words: list[str]) -> None:
    """Become the program, on so many processes; what stands before it are the launcher's options.

    An engine waits while there is a file `hold`: so tests need no luck to meet a job that runs.
    """
    while "--phases" in words and (FOLDER / "hold").exists():
        time.sleep(0.05)
    program = next(i for i, word in enumerate(words) if not word.startswith("-"))
    mpiexec = Path(sys.executable).parent / "mpiexec"
    before = [str(mpiexec), "-n", str(processes)] if processes > 1 else []
    argv = [*before, *words[program:]]
    os.execvp(argv[0], argv)


def option(name: str, words: list[str]) -> int:
    return next(int(w.partition("=")[2]) for w in words if w.startswith(f"--{name}="))


def lsf(name: str, words: list[str]) -> None:
    if name == "bsub":
        print(f"Job <{submit(sys.stdin.buffer.read())}> is submitted to queue <pbatch>.")
    elif name == "bjobs":
        ended = code(words[-1])
        print("RUN" if ended is None else "EXIT" if ended else "DONE")
    elif name == "bkill":
        end(words)
    else:
        launch(option("nrs", words) * option("tasks_per_rs", words), words)


def flux(words: list[str]) -> None:
    command, *rest = words
    if command == "batch":
        print(f"f{submit(Path(rest[-1]).read_bytes())}")
    elif command == "jobs":
        ended = code(rest[-1].removeprefix("f"))
        print("RUN " if ended is None else "INACTIVE FAILED" if ended else "INACTIVE COMPLETED")
    elif command == "cancel":
        end([word.removeprefix("f") for word in rest])
    else:
        launch(option("ntasks", rest), rest)


def main() -> None:
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (FOLDER / "calls.txt").open("a") as calls:
        calls.write(json.dumps([name, *words]) + "\n")
    flux(words) if name == "flux" else lsf(name, words)


if __name__ == "__main__":
    main()
