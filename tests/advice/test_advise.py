"""`tiercel advise` on real programs: nothing of theirs touched, nothing left behind, always an answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project
from tests.placement.test_staging import state
from tiercel.advice.isolation import no_isolation
from tiercel.advice.stdin import Input
from tiercel.programs import program
from tiercel.runs.lock import SiteLock
from tiercel.site.mounts import mount_of, read_mounts

pytestmark = pytest.mark.skipif(bool(no_isolation()), reason=no_isolation() or "-")


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
    """A folder with an input, a hard link, a FIFO and a file full of holes."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "in").write_bytes(bytes(range(256)) * 400)
    (folder / "again").hardlink_to(folder / "in")
    os.mkfifo(folder / "fifo")
    with (folder / "sparse").open("wb") as file:
        file.truncate(8 << 20)
    return folder


def advise(project: Project, data: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    tiercel = [sys.executable, "-m", "tiercel", "advise", "-o", str(data.parent / "answer"), *words]
    return subprocess.run(
        tiercel, cwd=data, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "XDG_CACHE_HOME": str(data.parent)}, **options,
    )  # fmt: skip


def nothing_left(data: Path) -> None:
    scratch = data.parent / "scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []
    assert not any(mount.point.is_relative_to(data) for mount in read_mounts())


@pytest.fixture
def inside(two: Project, data: Path) -> Path:
    """The data in the project's folder, so that it is found from there."""
    there = two.root / "data"
    data.rename(there)
    return there


def test_the_program_runs_on_each_storage_and_its_files_stay(two: Project, inside: Path) -> None:
    before = state(inside)
    done = advise(two, inside, "--minutes", "0.3", "--json", "--", "sh", "-c", "wc -c <in >out; sync out")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert state(inside) == before
    assert answer["home"] == "main" and [f["path"] for f in answer["folders"]] == [str(inside)]
    [memory] = answer["placements"]
    assert memory["placement"] == "memory" and memory["output_differs"] == [] and memory["memory"] is True
    assert answer["program_runs"] >= 3 and len(answer["home_seconds"]["runs"]) >= 1
    assert (inside.parent / "answer" / "index.html").stat().st_size > 10_000
    nothing_left(inside)


def test_output_that_differs_from_storage_to_storage_is_told(two: Project, inside: Path) -> None:
    done = advise(
        two,
        inside,
        "--minutes",
        "0.3",
        "--warm",
        "--json",
        "--",
        "sh",
        "-c",
        "stat -f -c %T . >type; date +%N >now",
    )
    answer = json.loads(done.stdout)
    [memory] = answer["placements"]
    if len(answer["home_seconds"]["runs"]) > 1 and memory["run_seconds"]:
        assert memory["output_differs"] == [str(inside / "type")]  # `now` differs at home, too


def test_a_program_that_fails_is_one_sentence(two: Project, inside: Path) -> None:
    before = state(inside)
    done = advise(two, inside, "--", "sh", "-c", "rm in; echo broken >&2; exit 3")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "exit code 3: broken" in done.stderr and state(inside) == before
    nothing_left(inside)


def test_helpers_that_stay_are_ended_and_named(two: Project, inside: Path) -> None:
    mark = f"30{os.getpid()}"
    done = advise(two, inside, "--minutes", "0.3", "--json", "--", "sh", "-c", f"sleep {mark} & echo x >out")
    assert any("leaves processes running" in note for note in json.loads(done.stdout)["notes"])
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(p)]
    assert [p for p in left if b"sleep" in _read(p)] == []
    nothing_left(inside)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_every_run_reads_the_same_input(two: Project, inside: Path) -> None:
    words = ["--minutes", "0.3", "--json", "--", "sh", "-c", 'read x; [ "$x" = hello ] && echo $x >out']
    assert advise(two, inside, *words, input="hello\n").returncode == 0
    assert advise(two, inside, *words, input="other\n").returncode == 2


def obeys_signals() -> None:
    """Undo what a background job (SIGINT) and nohup (SIGHUP) leave ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_ended_in_the_middle_nothing_is_left(two: Project, inside: Path, ending: signal.Signals) -> None:
    before = state(inside)
    words = [sys.executable, "-m", "tiercel", "advise", "-o", str(inside.parent / "answer"), "--", "sh", "-c",
             f"echo x >out; touch {inside.parent}/running; sleep 60"]  # fmt: skip
    ran = subprocess.Popen(
        words, cwd=inside, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=obeys_signals,  # noqa: PLW1509
    )  # fmt: skip
    while not (inside.parent / "running").exists():
        assert ran.poll() is None
        time.sleep(0.02)
    ran.send_signal(ending)
    ran.wait(60)
    for _ in range(500):  # a killed one's watcher cleans up by itself
        if not list((inside.parent / "scratch").glob("*")):
            break
        time.sleep(0.02)
    assert state(inside) == before
    nothing_left(inside)


def test_copies_are_removed_when_tiercel_is_killed_between_runs(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    (copies / "in").mkdir(parents=True)
    code = (
        "import os, pathlib, sys\nfrom tiercel.advice.isolation import guarded\n"
        "with guarded() as remove_at_end:\n remove_at_end(pathlib.Path(sys.argv[1]))\n os.kill(0, 9)"
    )
    command = [sys.executable, "-c", code, str(copies)]
    assert subprocess.run(command, check=False, start_new_session=True).returncode == -signal.SIGKILL
    for _ in range(500):
        if not copies.exists():
            break
        time.sleep(0.02)
    assert not copies.exists()


def test_what_cannot_be_tried_is_said(two: Project, inside: Path) -> None:
    assert "starts processes where" in advise(two, inside, "--", "srun", "true").stderr
    assert "is not a folder" in advise(two, inside, "--files", "no", "--", "true").stderr
    done = advise(two, inside, "--", "true")
    assert done.returncode == 0 and "nothing to place" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_answer_that_cannot_be_written_is_refused_before_anything_runs(two: Project, inside: Path) -> None:
    (inside.parent / "answer").mkdir(mode=0o555)
    done = advise(two, inside, "--", "sh", "-c", f"touch {two.root}/ran")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--output" in done.stderr
    assert not (two.root / "ran").exists()


def test_a_missing_program_is_refused_without_waiting_for_the_lock(two: Project, inside: Path) -> None:
    results = two.root / "results" / "local"
    results.mkdir(parents=True, exist_ok=True)
    with SiteLock(results):
        done = advise(two, inside, "--", "/no/such/program")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "no such program" in done.stderr


#: Takes 1.2 s at home and 0.3 s on another file system, by its own choice: no disk's speed matters.
CHOOSES = """
import os, sys, time
time.sleep(1.2 if os.stat(".").st_dev == int(sys.argv[1]) else 0.3)
open("out", "w").write("done")
"""


def test_the_written_script_runs_the_program_where_the_user_stands(two: Project, inside: Path) -> None:
    program = [sys.executable, "-c", CHOOSES, str(inside.stat().st_dev)]
    done = advise(two, inside, "--minutes", "2", "--runs", "1000000", "--apply", "--json", "--", *program)
    command = json.loads(done.stdout)["apply"]
    assert subprocess.run(command, shell=True, cwd=inside, check=False).returncode == 0
    assert (inside / "out").read_text() == "done"


def test_without_a_move_apply_still_answers(two: Project, inside: Path) -> None:
    """0.3 s at home, 1.2 s elsewhere: nothing is to be moved."""
    program = [sys.executable, "-c", CHOOSES.replace("==", "!="), str(inside.stat().st_dev)]
    done = advise(two, inside, "--minutes", "0.3", "--apply", "--", *program)
    assert done.returncode == 0 and done.stdout.count("main") >= 1 and "--apply" in done.stderr
    assert not (inside / "stage.py").exists()


@pytest.mark.parametrize("path", ["out", "{folder}/out"])
def test_where_mounts_are_forbidden_the_program_does_not_run(two: Project, inside: Path, path: str) -> None:
    before = state(inside)
    words = [sys.executable, "-m", "tiercel", "advise", "--", "sh", "-c",
             f"echo x >{path.format(folder=inside)}"]  # fmt: skip
    forbid = 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", forbid, "sh", *words],
        cwd=inside, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "max_mnt_namespaces" in done.stderr and "tiercel" not in done.stderr:
        pytest.skip(f"the limit cannot be set: {done.stderr.strip()}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "user.max_mnt_namespaces is 0" in done.stderr and "--once" in done.stderr
    assert state(inside) == before


@pytest.mark.skipif(program("tiercel-replay") is None, reason="needs tiercel-replay")
def test_a_trace_is_estimated_without_a_bound(two: Project, inside: Path) -> None:
    trace = inside.parent / "run.strace"
    new = f"{inside}/new"
    trace.write_text(
        f'7 1700000010.000000 openat(AT_FDCWD, "{new}", O_WRONLY|O_CREAT, 0666) = 3<{new}> <0.000010>\n'
        f'7 1700000010.001000 write(3<{new}>, ""..., 5000) = 5000 <0.000100>\n'
        f"7 1700000010.002000 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3<{new}>, 0) = 0x7f00 <0.000100>\n"
    )
    done = advise(two, inside, "--json", str(trace))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["method"] == "replay" and answer["estimate"]["upper_bound"] is None
    assert set(answer["estimate"]["io_seconds"]) == {"main", "memory"} and answer["placements"] == []
    assert "memory mappings" in answer["estimate"]["left_out"] and "estimate" in answer["answer"][0]


def test_a_pipe_is_read_once_and_repeated() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"some input\n")
    given = Input(reader)
    said = []
    for _ in range(3):
        with given.opened() as stdin:
            said.append(
                subprocess.run(["head", "-n", "1"], stdin=stdin, capture_output=True, check=True).stdout
            )
    os.close(writer)
    assert said == [b"some input\n"] * 3
