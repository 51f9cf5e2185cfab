"""A program runs once, as it is, and what could not be seen is said. With real programs and real tracers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tiercel.advice.capture import Capture, Program
from tiercel.advice.tracers import Strace, choose, interpreter_of, is_static
from tiercel.errors import UserError
from tiercel.runs.strace import ptrace_works
from tiercel.runs.tracing import preload_library
from tiercel.traces import open_trace

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None or not ptrace_works(), reason="strace is not installed, or may not trace"
)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def capture(argv: list[str], folder: Path, trace_for: float | None = None, tracer: str = "strace") -> Capture:
    return Program(argv, choose(argv, tracer), folder / "trace", trace_for).capture()


def written(found: Capture, folder: Path) -> dict[str, int]:
    frame = open_trace(found.folder, cache=folder / "cache")
    rows = frame.query(
        "SELECT file, sum(size) AS size FROM events WHERE kind = 'write' AND file IS NOT NULL GROUP BY file"
    )
    return {f: int(s) for f, s in zip(rows["file"], rows["size"], strict=True) if f.startswith(str(folder))}


@needs_strace
def test_redirections_and_helpers_are_seen(tmp_path: Path) -> None:
    script = f"echo hello > {tmp_path}/a; cd {tmp_path}; (printf 12345 > b); cat a b > c; exit 3"
    found = capture(["sh", "-c", script], tmp_path)
    assert found.exit_code == 3
    assert any("exit code 3" in note for note in found.notes)
    assert written(found, tmp_path) == {f"{tmp_path}/a": 6, f"{tmp_path}/b": 5, f"{tmp_path}/c": 11}
    assert (tmp_path / "c").read_text() == "hello\n12345"
    assert found.kernel_bytes >= 6 + 5 + 2 * 11


@needs_strace
@needs_compiler
def test_a_static_program_is_seen_by_strace_and_refused_by_dftracer(tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(
        ["cc", "-static", "-o", str(tmp_path / "p"), str(source)], check=False, capture_output=True
    )
    if built.returncode:
        pytest.skip("no static C library")
    assert is_static(tmp_path / "p") and not is_static(Path(sys.executable).resolve())
    with pytest.raises(UserError, match="static"):
        choose([str(tmp_path / "p")], "dftracer")
    assert choose([str(tmp_path / "p")]).name == "strace"


@needs_strace
def test_a_program_goes_on_when_tracing_ends(tmp_path: Path) -> None:
    code = (
        "import time, pathlib\n"
        f"p = pathlib.Path({str(tmp_path)!r})\n"
        "(p / 'first').write_text('x')\n"
        "end = time.monotonic() + 30\n"
        "while not (p / 'go').exists() and time.monotonic() < end: time.sleep(0.05)\n"
        "(p / 'last').write_text('y')\n"
    )
    program = Program([sys.executable, "-c", code], Strace(), tmp_path / "trace", 1.5)
    found = program.capture()
    assert found.exit_code is None
    assert any("went on without the tracer" in note for note in found.notes)
    (tmp_path / "go").touch()
    assert program.finish() == 0  # its calls did not fail for want of the tracer
    assert (tmp_path / "last").read_text() == "y"
    assert written(found, tmp_path) == {f"{tmp_path}/first": 1}


@needs_strace
def test_helpers_that_stay_are_told(tmp_path: Path) -> None:
    found = capture(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/helper; exit 0"], tmp_path)
    os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)  # fails where it was waited for
    assert found.exit_code == 0
    assert any("helpers that still run" in note for note in found.notes)


@pytest.mark.skipif(preload_library() is None, reason="DFTracer is not installed")
def test_dftracer_where_asked_for(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'out')!r}, 'w').write('x' * 1000)"
    found = capture([str(Path(sys.executable).resolve()), "-c", code], tmp_path, tracer="dftracer")
    assert (found.tracer, found.exit_code) == ("dftracer", 0)
    assert written(found, tmp_path)[f"{tmp_path}/out"] == 1000


def test_programs_that_cannot_be_run_are_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such program on PATH"):
        choose(["tiercel-no-such-program"])
    (tmp_path / "text").write_text("x")
    with pytest.raises(UserError, match="is not executable"):
        choose([str(tmp_path / "text")])
    with pytest.raises(UserError, match="allowed are auto, strace, dftracer"):
        choose(["true"], "ltrace")


def test_where_nothing_can_trace_both_reasons_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    (tmp_path / "prog").write_bytes(b"\x7fELF" + bytes([2, 1, 1]) + bytes(57))  # no program headers: static
    (tmp_path / "prog").chmod(0o755)
    with pytest.raises(UserError, match=r"nothing here can trace it: strace: not installed.*DFTracer: "):
        choose([str(tmp_path / "prog")])


def test_a_script_is_run_by_what_its_first_line_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"#!{sys.executable}\n")
    (tmp_path / "b").write_text("#!/usr/bin/env sh\n")
    assert interpreter_of(tmp_path / "a") == Path(sys.executable)
    assert interpreter_of(tmp_path / "b") == Path(shutil.which("sh") or "")
    assert interpreter_of(Path(os.devnull)) == Path(os.devnull)


@needs_strace
def test_what_a_program_leaves_behind_does_not_become_a_child_of_ours(tmp_path: Path) -> None:
    """A notebook that asks for advice would keep such children as zombies until it ends."""
    before = set(psutil.Process().children(recursive=True))
    capture(["sh", "-c", f"(sleep 0.2; echo $$ > {tmp_path}/helper) & exit 0"], tmp_path)
    end = time.monotonic() + 10
    while not (tmp_path / "helper").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert (tmp_path / "helper").exists()
    assert set(psutil.Process().children(recursive=True)) <= before
