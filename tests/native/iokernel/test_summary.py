"""Where the summary goes: a file is replaced, anything else is written through."""

import json
import os
import signal
import stat
import subprocess

import pytest


def _pipe(tmp_path, name):
    """A FIFO: what a device node is to a writer, and needs no privilege."""
    path = tmp_path / name
    os.mkfifo(path)
    return path


def test_a_summary_that_is_a_pipe_is_written_through(iokernel, tmp_path):
    pipe = _pipe(tmp_path, "pipe")
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    run = iokernel("-w -t 4k -b 8k -o f -O summaryFile=pipe")
    text = reader.communicate(timeout=60)[0]
    assert run.status == 0 and json.loads(text)["status"] == "ok"
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_summary_that_is_a_device_leaves_the_device(iokernel, tmp_path):
    """The kind of ``-O summaryFile=/dev/null`` as root, on a node of our own."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"x")
    except PermissionError:
        pytest.skip("no right to make or open device nodes here")
    for name in ("null", "link"):
        if name == "link":
            (tmp_path / "link").symlink_to("null")
        assert iokernel(f"-w -t 4k -b 8k -o f -O summaryFile={name}").status == 0
        assert stat.S_ISCHR(device.lstat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "null"]  # no drafts left


def test_a_summary_that_is_a_link_changes_its_target(iokernel, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "old").symlink_to("there/old.json")
    (tmp_path / "there" / "old.json").write_text("old")
    (tmp_path / "new").symlink_to("there/new.json")
    for name in ("old", "new"):
        assert iokernel(f"-w -t 4k -b 8k -o f -O summaryFile={name}").status == 0
        assert (tmp_path / name).is_symlink()
        assert json.loads((tmp_path / "there" / f"{name}.json").read_text())["status"] == "ok"


def test_a_summary_that_cannot_be_written_is_told_before_anything_is_measured(iokernel, tmp_path):
    (tmp_path / "folder").mkdir()
    run = iokernel("-w -t 4k -b 8k -o f -O summaryFile=folder")
    assert run.status == 2 and "Is a directory" in run.stderr and not (tmp_path / "f").exists()


def test_a_pipe_that_nobody_reads_is_said_and_can_be_stopped(iokernel, tmp_path):
    pipe = _pipe(tmp_path, "pipe")
    command = [*iokernel.command, *iokernel.words(["-w -t 4k -b 8k -o f -O summaryFile=pipe"])]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert "waiting" in run.stderr.readline()
        run.terminate()
        assert run.wait(timeout=60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_results_that_would_go_nowhere_are_refused_before_anything_is_measured(iokernel, tmp_path):
    """A closed standard output has number 1, and the first file that is opened would take it."""
    words = [*iokernel.command, *iokernel.words(["-w -t 4k -b 8k -o f"])]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *map(str, words)]
    run = subprocess.run(closed, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "standard output" in run.stderr and not (tmp_path / "f").exists()
    run = subprocess.run([*closed, "-O", "summaryFile=s"], cwd=tmp_path, check=False)
    assert run.returncode == 0 and json.loads((tmp_path / "s").read_text())["status"] == "ok"
