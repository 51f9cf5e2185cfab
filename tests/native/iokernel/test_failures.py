"""Failures end in a valid document, one line, a status, and no files left behind."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest


def failed(run, **expected):
    assert run.status == 1, run.stdout
    assert run.stderr.startswith("iokernel: ") and run.stderr.count("\n") == 1
    document = run.document
    assert document["status"] == "failed"
    error = document["error"]
    assert {key: error[key] for key in expected} == expected
    assert error["host"] and error["message"]
    return error


def test_full_device(iokernel):
    run = iokernel("-n 2 -w -t 4k -b 64k -o /dev/full")
    failed(run, errno=28, operation="write", phase="write", path="/dev/full", rank=0)
    assert Path("/dev/full").exists()


@pytest.mark.parametrize("options", [[], ["-z"], ["-F"], ["-D 100 --stonewall-wear-out"], ["-g"]])
@pytest.mark.parametrize("depth", [1, 4])
def test_file_too_large(iokernel, options, depth):
    if depth > 1 and not iokernel("--capabilities").document["io_uring"]:
        pytest.skip("the kernel does not offer io_uring to this process")
    limit = 100_000

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run = iokernel("-n 3 -w -t 4k -b 256k -o f --queue-depth", depth, *options, preexec_fn=limited)
    failed(run, errno=27, operation="write")
    assert list(iokernel.directory.iterdir()) == []


def test_full_file_system(iokernel):
    mount = iokernel.path("small")
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        # rank 1 still has its file open when the space that was free at the start is taken
        filler = mount / "filler"
        run = iokernel("-n 2 -w -t 4k -b 64k -F -o small/f --max-bytes-fill 1")
        assert run.status == 0
        filler.write_bytes(b"x" * 200_000)
        run = iokernel("-n 2 -w -t 4k -b 64k -F -o small/f --max-bytes-fill 1")
        assert run.status == 2 and run.stderr.startswith("iokernel: --max-bytes-fill: ")
        filler.unlink()
        run = iokernel("md --processes 2 -d small/m -n 40 -w 3000 -F")
        # 80 files of one page each do not fit into 64 pages, though 240 000 bytes seem to
        failed(run, errno=28, phase="file-create", operation="write")
        assert list(mount.iterdir()) == []
    finally:
        subprocess.run(["umount", mount], check=True)


def test_missing_file(iokernel):
    failed(iokernel("-n 2 -r -t 4k -b 8k -o f"), errno=2, operation="open", path="f", phase="read")
    failed(iokernel("-n 2 -r -F -t 4k -b 8k -o f"), errno=2, path="f.00000000")


def test_missing_folder(iokernel):
    failed(iokernel("-n 2 -w -t 4k -b 8k -o missing/f"), errno=2, operation="open")


def test_folder_in_place_of_the_file(iokernel):
    iokernel.path("f").mkdir()
    failed(iokernel("-w -t 4k -b 8k -o f"), errno=21)
    assert iokernel.path("f").is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_forbidden_folder(iokernel):
    iokernel.path("closed").mkdir(mode=0o500)
    failed(iokernel("-w -t 4k -b 8k -o closed/f"), errno=13, operation="open")


@pytest.mark.parametrize("depth", [1, 4])
def test_short_file(iokernel, depth):
    if depth > 1 and not iokernel("--capabilities").document["io_uring"]:
        pytest.skip("the kernel does not offer io_uring to this process")
    iokernel.path("f").write_bytes(b"x" * 10_000)
    shape = ("-r -t 4k -b 16k -o f --queue-depth", depth)
    error = failed(iokernel(*shape), errno=0, operation="check")
    assert error["message"] == "the file holds 10000 bytes, the test reads 16384"
    # a stonewall may end the read before the end of the file, so only the read itself finds out
    error = failed(iokernel(*shape, "-D 100"), errno=0, operation="read")
    # with several reads in flight the one that lies wholly behind the end may come back first
    ends = ["unexpected end of file at byte 10000", "unexpected end of file at byte 12288"]
    assert error["message"] in ends[:depth]
    assert iokernel.path("f").stat().st_size == 10_000  # not a file of this test


def test_finished_phases_survive_a_failure(iokernel):
    # the write of repetition 0 is in the document although its read fails
    run = iokernel("--phases w,r -t 4k -b 8k -o /dev/null")
    failed(run, operation="read", phase="read")
    assert [r["access"] for r in run.results] == ["write"]
    assert len(run.document["summary"]) == 1
    assert Path("/dev/null").exists()


def start(engine, *arguments):
    """A run that takes long, after it has begun to write."""
    process = subprocess.Popen(
        [*engine.command, *engine.words(arguments)],
        cwd=engine.directory,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    for _ in range(2000):
        if list(engine.directory.rglob("f*")):
            return process
        time.sleep(0.01)
    process.kill()
    raise AssertionError("nothing was written")


LONG = "-n 3 -F -Y -t 4k -b 256m -w -o f"
LONG_MD = "md --processes 3 -n 2000000 -F -C -d fd"


def children(process):
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("arguments", [LONG, LONG_MD], ids=["data", "md"])
def test_a_killed_rank_ends_the_run(iokernel, victim, arguments):
    process = start(iokernel, arguments)
    os.kill(children(process)[victim], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.count("\n") == 1
    document = json.loads(out)
    assert document["status"] == "failed" and document["error"]["rank"] == victim
    assert document["error"]["message"].startswith(f"rank {victim} was killed by signal 9")
    assert list(iokernel.directory.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("arguments", [LONG, LONG_MD], ids=["data", "md"])
def test_a_stopped_run_cleans_up(iokernel, number, arguments):
    process = start(iokernel, arguments)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and err.count("\n") == 1
    assert json.loads(out)["error"]["signal"] == number
    assert list(iokernel.directory.iterdir()) == []


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("arguments", ["-n 2 -F -u -t 4k -b 8k -w -o f", "md --processes 2 -n 4 -F -d fd"])
@pytest.mark.parametrize("which", [1, 2])
def test_a_rank_killed_in_the_moment_it_made_a_directory(iokernel, arguments, which):
    # ended by a signal as mkdir returns: nothing can be noted after it
    kill = f"strace -f -o /dev/null -e trace=mkdir -e inject=mkdir:signal=USR1:when={which}"
    run = subprocess.run(
        [*kill.split(), *iokernel.command, *iokernel.words([arguments])],
        cwd=iokernel.directory,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    made = "-u" in arguments and which == 2  # counted by process: each of these makes one
    assert run.returncode == (0 if made else 1), run.stderr
    assert list(iokernel.directory.iterdir()) == []


def test_a_directory_that_was_there_stays(iokernel):
    iokernel.path("fd").mkdir()
    assert iokernel("md --processes 2 -n 4 -F -d fd").status == 0
    assert list(iokernel.directory.iterdir()) == [iokernel.path("fd")]


def test_a_stopped_run_keeps_files_when_told_to(iokernel):
    process = start(iokernel, LONG, "-k")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert {p.name for p in iokernel.directory.iterdir()} <= {f"f.{rank:08d}" for rank in range(3)}
    assert list(iokernel.directory.iterdir())


def test_no_rank_survives_a_killed_parent(iokernel):
    process = start(iokernel, LONG)
    ranks = children(process)
    process.kill()
    process.communicate(timeout=60)
    for _ in range(1000):
        alive = [pid for pid in ranks if running(pid)]
        if not alive:
            break
        time.sleep(0.01)
    assert alive == []


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
