"""Which tracer watches a program: strace where it can be used, else DFTracer's preload library.

strace comes first because advice needs what only system calls tell: static and set-uid programs and scripts'
helpers, descriptors made by dup2 (every redirection of a shell), names below a changed folder, calls that
failed. It costs some 10 to 100 us a call, which is measured (`call_cost`) and taken out. DFTracer costs a
microsecond, and goes with MPI launchers to other nodes.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import stat
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tiercel.advice.starts import must_start
from tiercel.errors import UserError
from tiercel.placement.recipe import FileRecord, Operation, Recipe
from tiercel.programs import own_program, program
from tiercel.runs.strace import no_strace, said_by, under_strace
from tiercel.runs.tracing import preload_library, tracing_environment

#: Calls by which the cost of a traced call is measured, and what lies between those that compute, ns.
_TRIALS, _COMPUTES_NS = 3000, 50_000


@dataclass(frozen=True)
class CallCost:
    """What a tracer adds to one call, in seconds: `delay` of the program, `told` of that in the call's own
    time in the trace, `user` and `system` of the processor time of a program that computes between its
    calls."""

    delay: float = 0.0
    told: float = 0.0
    user: float = 0.0
    system: float = 0.0


class Tracer(ABC):
    """Something that logs a program's I/O into a folder."""

    name: str
    why: str = ""
    """In a sentence: what decided for it."""

    @abstractmethod
    def command(self, argv: Sequence[str], folder: Path, cut: bool) -> tuple[list[str], Mapping[str, str]]:
        """Return the command line that runs `argv` traced into `folder`, and variables to set.

        `cut`: tracing may end before the program does.
        """

    @abstractmethod
    def version(self) -> str: ...

    def call_cost(self) -> CallCost:
        """Return what it adds to one call of a program: measured by stats with and without it, here."""
        replay = program("tiercel-replay")
        if replay is None:
            return CallCost()
        stats = [Operation("T", 0, 0, 0, _COMPUTES_NS, [])] * _TRIALS
        recipe = Recipe([FileRecord("file", existed=True)], [stats], [[]])
        with tempfile.TemporaryDirectory(prefix="tiercel-call-cost-") as place:
            folder = Path(place)
            (folder / "recipe.txt").write_text(recipe.text(), encoding="ascii")
            (folder / "root").mkdir()
            head = [str(replay), str(folder / "recipe.txt"), "--root", str(folder / "root")]
            (folder / "trace").mkdir()
            traced, variables = self.command(head, folder / "trace", cut=False)
            plain = min(_metadata_seconds(head, {}) for _ in range(3)) / _TRIALS
            slow = min(_metadata_seconds(traced, variables) for _ in range(3)) / _TRIALS
            told = self.told_seconds(folder / "trace")
            computing, _ = self.command([*head, "--think", "busy"], folder / "trace", cut=False)
            alone = _spent([*head, "--think", "busy"], {})
            both = [_spent(computing, variables) for _ in range(2)]
        user, system = (max(0.0, (a + b) / 2 - c) / _TRIALS for a, b, c in zip(*both, alone, strict=True))
        return CallCost(max(0.0, slow - plain), max(0.0, told - plain), user, system)

    def told_seconds(self, _folder: Path) -> float:
        """Return the median time of a stat as the trace of the trial tells it; 0: not worth a word."""
        return 0.0


class Strace(Tracer):
    name = "strace"

    def command(self, argv: Sequence[str], folder: Path, cut: bool) -> tuple[list[str], Mapping[str, str]]:
        # -DDD: the program stays our child, and a signal from the terminal does not reach the tracer.
        # -I 2: the tracer can be asked to let go of the program.
        return under_strace(argv, folder / "run.strace", "-DDD", "-I", "2", filtered=not cut), {}

    def told_seconds(self, folder: Path) -> float:
        try:
            text = (folder / "run.strace").read_text(errors="replace")
        except OSError:
            return 0.0
        told = sorted(float(t) for t in re.findall(r'root/file".* <(\d+\.\d+)>$', text, re.MULTILINE))
        return told[len(told) // 2] if told else 0.0

    def version(self) -> str:
        said = said_by(["strace", "--version"])
        return said.splitlines()[0].rpartition(" ")[2] if said else ""


class DFTracer(Tracer):
    name = "dftracer"

    def command(self, argv: Sequence[str], folder: Path, cut: bool) -> tuple[list[str], Mapping[str, str]]:
        # "all": relative names too.
        return list(argv), dict(tracing_environment(folder.parent, Path("all")))

    def version(self) -> str:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            return version("dftracer")
        except PackageNotFoundError:
            return ""


def choose(argv: Sequence[str], wanted: str = "auto") -> Tracer:
    """Return the tracer for a program; UserError, with what to install, where none can be used.

    `wanted`: auto, strace or dftracer.
    """
    if wanted not in ("auto", "strace", "dftracer"):
        raise UserError(f"--tracer {wanted}: allowed are auto, strace, dftracer")
    without_strace, no_dftracer = _strace_problem(argv), _dftracer_problem(argv)
    if wanted == "strace" and without_strace:
        raise UserError(f"--tracer strace: {without_strace}")
    if wanted == "dftracer" and no_dftracer:
        raise UserError(f"--tracer dftracer: {no_dftracer}")
    if wanted == "strace" or (wanted == "auto" and not without_strace):
        must_start(find_program(argv), argv[0])
        tracer: Tracer = Strace()
        tracer.why = "asked for" if wanted == "strace" else "it sees every process and every failed call"
        return tracer
    if no_dftracer:
        raise UserError(
            f"{argv[0]}: nothing here can trace it: strace: {without_strace}; DFTracer: {no_dftracer}"
        )
    tracer = DFTracer()
    tracer.why = "asked for" if wanted == "dftracer" else f"strace cannot be used: {without_strace}"
    return tracer


def find_program(argv: Sequence[str]) -> Path:
    """Return the file that would be run; UserError where there is none."""
    if not argv:
        raise UserError("name a program, as in `tiercel advise -- PROGRAM ARGUMENTS`, or the path of a trace")
    return own_program(argv[0])


def _strace_problem(argv: Sequence[str]) -> str:
    if lacking := no_strace():
        return lacking
    if os.geteuid() != 0 and _special(find_program(argv)):
        return f"{argv[0]} changes its user (set-uid), which it may not while it is traced"
    return ""


def _dftracer_problem(argv: Sequence[str]) -> str:
    if preload_library() is None:
        return "not installed for this machine and Python"
    path = interpreter_of(find_program(argv))
    if _special(path):
        return f"{path} changes its user (set-uid), so it ignores preloaded libraries"
    if is_static(path):
        return f"{path} is static, so it loads no libraries"
    return ""


def interpreter_of(path: Path, depth: int = 4) -> Path:
    """Return the program that runs a script, as its first line names it; `path` itself for a program."""
    with path.open("rb") as file:
        first = file.read(256)
    if not first.startswith(b"#!") or depth == 0:
        return path
    words = first[2:].split(b"\n")[0].decode(errors="replace").split()
    if not words:
        return path
    name = words[1] if Path(words[0]).name == "env" and len(words) > 1 else words[0]
    found = shutil.which(name)
    return interpreter_of(Path(found), depth - 1) if found else path


def is_static(path: Path) -> bool:
    """Return whether an ELF program names no interpreter (PT_INTERP), so that nothing can be preloaded."""
    data = path.read_bytes()[: 1 << 16]
    if data[:4] != b"\x7fELF":
        return False
    wide, order = data[4] == 2, "little" if data[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)  # type: ignore[arg-type]

    table = number(32, 8) if wide else number(28, 4)
    size, count = (number(54, 2), number(56, 2)) if wide else (number(42, 2), number(44, 2))
    return all(number(table + i * size, 4) != 3 for i in range(count))  # 3: PT_INTERP


def _special(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID))


def _spent(argv: Sequence[str], variables: Mapping[str, str]) -> tuple[float, float]:
    """Return the user and system seconds of a command."""
    before = children_seconds()
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(argv, capture_output=True, timeout=60, check=True, env={**os.environ, **variables})
    user, system = (now - then for now, then in zip(children_seconds(), before, strict=True))
    return user, system


def children_seconds() -> tuple[float, float]:
    """Return the user and system time of the children that this process has waited for, and of theirs. strace
    is not among them: it makes itself independent of the program."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def _metadata_seconds(argv: Sequence[str], variables: Mapping[str, str]) -> float:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=60, check=True, env={**os.environ, **variables}
        )
        return float(json.loads(done.stdout)["total"]["metadata"]["seconds"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return 0.0
