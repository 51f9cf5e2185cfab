"""The user's Spack: where it is, whether it is new enough, and how it is called."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError

#: The first release whose environments choose a site's scope by an environment variable.
OLDEST = (1, 1)

#: How often Spack is called where it gives up waiting for another one: its own patience is 2 minutes each.
PATIENCE = 10

_WAITED = re.compile(r"Timed out waiting for a (?:read|write) lock")

_WITHOUT = (
    "no Spack: neither $SPACK_ROOT/bin/spack nor spack on PATH; load its module or set SPACK_ROOT "
    "(without it tiercel measures with the engines that are there: tiercel engines list)"
)


@dataclass(frozen=True)
class Spack:
    program: Path
    version: str

    def run(self, words: Sequence[str], variables: dict[str, str], line: Callable[[str], None]) -> int:
        """Run ``spack WORDS``, give every line of its output (both streams) to `line`, return its status.

        Interrupted, it lets Spack end first: a build that is cut off cleans up after itself. Where it gave up
        waiting for another Spack of the user (the first one to meet its packages indexes them, which takes
        longer than a second one waits), it is asked again, `PATIENCE` times.
        """
        for _ in range(PATIENCE):
            waited = False

            def looked(text: str) -> None:
                nonlocal waited
                waited = waited or bool(_WAITED.search(text))
                line(text)

            status = self._run(words, variables, looked)
            if not (status and waited):
                break
        return status

    def _run(self, words: Sequence[str], variables: dict[str, str], line: Callable[[str], None]) -> int:
        process = subprocess.Popen(
            [str(self.program), "--color=never", *words],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        try:
            for text in process.stdout:
                line(text.rstrip("\n"))
            return process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
        finally:
            process.stdout.close()


def spack_program() -> Path | None:
    """Return the spack of SPACK_ROOT, else the one on PATH, else None."""
    root = os.environ.get("SPACK_ROOT")
    if root:
        program = Path(root) / "bin" / "spack"
        return program if os.access(program, os.X_OK) else None
    found = shutil.which("spack")
    return Path(found) if found else None


def find_spack() -> Spack:
    """Return a Spack that works; UserError that says what is wrong with it otherwise."""
    root = os.environ.get("SPACK_ROOT")
    program = spack_program()
    if program is None and root:
        raise UserError(f"SPACK_ROOT={root}: no program bin/spack in it")
    if program is None:
        raise UserError(_WITHOUT)
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{program} --version: {error}") from None
    numbers = re.match(r"(\d+)\.(\d+)(\.\S+)?", answer.stdout.strip())
    if answer.returncode or not numbers:
        told = (answer.stderr or answer.stdout).strip().splitlines()
        raise UserError(f"{program} --version failed: {told[-1] if told else 'it said nothing'}")
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise UserError(f"{program}: is Spack {numbers[0]}; spack.yaml needs {wanted} or newer")
    return Spack(program, numbers[0])
