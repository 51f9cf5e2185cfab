"""`tiercel advise` on real programs: one run, nothing of theirs touched, an answer in every case."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Project
from tiercel.programs import program
from tiercel.runs.strace import ptrace_works
from tiercel.site.mounts import mount_of, read_mounts

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None or not ptrace_works() or program("tiercel-replay") is None,
    reason="needs strace that may trace, and tiercel-replay",
)

#: Reads its input, writes small synced files, renames them, and thinks a little.
PROGRAM = """\
import os, sys, time
from pathlib import Path
data = Path(sys.argv[1])
(data / "runs").open("a").write("run\\n")
content = (data / "in" / "input").read_bytes()
for i in range(20):
    with (data / "out" / f"{i}.tmp").open("wb") as file:
        file.write(content[: 3000 + i])
        file.flush()
        os.fsync(file.fileno())
    (data / "out" / f"{i}.tmp").rename(data / "out" / f"{i}")
"""


@pytest.fixture
def two(new_project: Callable[[str], Project], tmp_path: Path) -> Iterator[Project]:
    """A project with two storages: the temporary folder's, and memory."""
    project = new_project("scratch")
    mount = mount_of(tmp_path, read_mounts())
    assert mount is not None
    if not Path("/dev/shm").is_dir() or mount.point == Path("/dev/shm"):
        pytest.skip("no second file system")
    memory = f"/dev/shm/{tmp_path.parent.name}-{tmp_path.name}"
    project.site(f"""
        site: local
        launcher: fork
        processes_per_node: 2
        storages:
          main:
            type: {mount.type}
            mount: "{mount.point}"
            medium: {mount.medium}
            scratch: "{tmp_path}/scratch"
          memory: {{type: tmpfs, mount: /dev/shm, medium: memory, scratch: "{memory}"}}
        """)
    yield project
    shutil.rmtree(memory, ignore_errors=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("in", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "in" / "input").write_bytes(bytes(range(256)) * 400)
    (tmp_path / "program.py").write_text(PROGRAM)
    return folder


def advise(project: Project, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return project.tiercel(
        "advise",
        "--minutes",
        "0.1",
        "-o",
        str(tmp_path / "answer"),
        *words,
        env={"XDG_CACHE_HOME": str(tmp_path)},
    )


def test_a_program_is_run_once_and_advised(two: Project, data: Path, tmp_path: Path) -> None:
    done = advise(two, tmp_path, "--json", "--", sys.executable, str(tmp_path / "program.py"), str(data))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (data / "runs").read_text() == "run\n"
    assert sorted(p.name for p in (data / "out").iterdir()) == sorted(str(i) for i in range(20))
    assert [(data / "out" / str(i)).stat().st_size for i in range(20)] == [3000 + i for i in range(20)]
    assert not (data / "out").is_symlink()  # a plan is written, not carried out
    units = {u["unit"]: u for u in answer["units"]}
    assert units[str(data / "out")]["moves"] == "as a folder"
    assert units[str(data / "in") + "/*"]["moves"] == "file by file"
    assert units[str(data / "in") + "/*"]["bytes"] == 256 * 400
    # 20 files of 3,000 bytes and more; "runs" grows by 4.
    assert answer["io"]["bytes_written"] == sum(3000 + i for i in range(20)) + 4
    assert {w["way"] for w in answer["ways"]} >= {"home"}
    assert answer["verdict"]["way"] == "home" or (tmp_path / "answer" / "plan" / "stage.sh").exists()
    assert (tmp_path / "answer" / "index.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "answer" / "advice.json").read_text())["program"][0] == sys.executable
    # Replays wrote to scratch folders and took everything away again.
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_plan_can_be_carried_out_where_one_is_made(two: Project, data: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(tmp_path / "program.py"), str(data)]
    done = advise(two, tmp_path, "--json", "--runs", "1000", "--", *command)
    assert done.returncode == 0, done.stderr
    script = tmp_path / "answer" / "plan" / "stage.sh"
    if not script.exists():
        pytest.skip("this machine's disk syncs as fast as memory: nothing to move")
    shutil.rmtree(data / "out")
    (data / "out").mkdir()
    for words in (["sh", str(script), "in"], command, ["sh", str(script), "out"]):
        ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, (words, ran.stderr)
    assert (data / "runs").read_text() == "run\nrun\n"
    assert [(data / "out" / str(i)).stat().st_size for i in range(20)] == [3000 + i for i in range(20)]
    assert not any(p.is_symlink() for p in data.rglob("*"))


def test_a_single_storage_gives_advice_on_the_program(project: Project, data: Path, tmp_path: Path) -> None:
    done = advise(project, tmp_path, "--", sys.executable, str(tmp_path / "program.py"), str(data))
    assert done.returncode == 0, done.stderr
    assert "waits for I/O" in done.stdout
    assert "Leave the files where they are" in done.stdout
    assert not (tmp_path / "answer" / "plan").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["true"], "reads and writes no files of its own"),
        (["sh", "-c", "exit 4"], "ended with exit code 4"),
        (["sh", "-c", "kill -9 $$"], "ended by SIGKILL"),
    ],
)
def test_programs_without_files_and_programs_that_fail_are_answered(
    project: Project, tmp_path: Path, command: list[str], said: str
) -> None:
    done = advise(project, tmp_path, "--", *command)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_mistakes_are_one_line(project: Project, data: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no trace\n")
    for words, said in (
        (["--", "tiercel-no-such"], "no such program on PATH"),
        (["--home", "nowhere", "--", "sh", "-c", f"echo > {data}/x"], "has no such storage"),
        (["--trace-for", "soon", "--", "true"], "--trace-for"),
        (["--tracer", "gdb", "--", "true"], "allowed are auto, strace, dftracer"),
        ([str(tmp_path / "notes.txt")], "notes.txt"),
    ):
        shutil.rmtree(tmp_path / "answer", ignore_errors=True)
        done = advise(project, tmp_path, *words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert said in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


def test_a_trace_from_elsewhere_is_advised_with_a_home(two: Project, tmp_path: Path) -> None:
    lines = ['openat(AT_FDCWD, "/far/a", O_WRONLY|O_CREAT, 0666) = 3</far/a> <0.000100>']
    lines += ['write(3</far/a>, ""..., 4096) = 4096 <0.000100>', "fsync(3</far/a>) = 0 <0.010000>"] * 20
    path = tmp_path / "far.strace"
    path.write_text("".join(f"7 17000000{10 + i}.000000 {line}\n" for i, line in enumerate(lines)))
    done = advise(two, tmp_path, "--json", "--home", "main", str(path))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["program"] is None
    assert answer["home"] == "main"
    assert answer["io"]["bytes_written"] == 20 * 4096


RELATIVE = """\
import os, sys
os.chdir(sys.argv[1])
os.mkdir("made")
for i in range(5):
    with open("made/new", "wb") as file:
        file.write(b"x" * 1000)
    os.rename("made/new", f"made/{i}")
"""


def test_relative_names_are_followed_or_said(project: Project, tmp_path: Path) -> None:
    """Below the folder that the program changed to; DFTracer does not tell it, so nothing is claimed."""
    (tmp_path / "relative.py").write_text(RELATIVE)
    python = str(Path(sys.executable).resolve())
    for tracer in ("strace", "dftracer"):
        (tmp_path / tracer).mkdir()
        shutil.rmtree(tmp_path / "answer", ignore_errors=True)
        done = advise(
            project, tmp_path, "--tracer", tracer, "--json", "--", python, str(tmp_path / "relative.py"),
            str(tmp_path / tracer),
        )  # fmt: skip
        if tracer == "dftracer" and done.returncode == 2 and "not installed" in done.stderr:
            return
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        units = {u["unit"]: u for u in answer["units"]}
        if tracer == "strace":
            # The folder that the program makes goes with the one around it.
            assert set(units) >= {str(tmp_path / "strace")}
            assert units[str(tmp_path / "strace")]["bytes"] == 6 * 1000  # new, and each of 0 to 4
            assert answer["io"]["bytes_written"] == 5 * 1000
        else:
            assert "relative paths" in answer["answer"][0]
            assert len(answer["answer"]) == 1


def test_what_a_program_prints_is_no_part_of_the_json(project: Project, tmp_path: Path) -> None:
    done = advise(project, tmp_path, "--json", "--", "sh", "-c", f"echo hello; echo x > {tmp_path}/x")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["program"][0] == "sh"
    assert "hello" in done.stderr


def test_mistakes_are_told_before_the_program_runs(project: Project, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    done = advise(project, tmp_path, "--home", "nowhere", "--", "touch", str(ran))
    assert done.returncode == 2
    blocked = tmp_path / "file"
    blocked.write_text("")
    other = project.tiercel("advise", "-o", str(blocked / "below"), "--", "touch", str(ran))
    assert other.returncode == 2
    assert "Traceback" not in other.stderr
    assert not ran.exists()
