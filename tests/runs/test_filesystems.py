"""A run measures the file system that its storage names, from its first folder to its last number."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tiercel.results.raw import RawStore, read_json, write_json
from tiercel.runs.filesystems import recorded_file_systems
from tiercel.runs.scratch import Scratch, check_scratch
from tiercel.site.filesystem import FileSystem
from tiercel.site.model import Stack

from ..conftest import ONE, Project, needs_iokernel
from ..private_mounts import require_mount, run_script

HERE = FileSystem(
    point="/p/fs", type="xfs", source="/dev/sda1", medium="disk", device=5, mount_id=77, fsid=1, uuid="aa",
    host="n1", boot="b1",
)  # fmt: skip
NFS = replace(HERE, type="nfs4", source="10.0.0.1:/export/a", medium="network", uuid="")


@pytest.mark.parametrize(
    ("change", "within_a_run", "since_the_evaluation_began"),
    [
        ({}, "", ""),
        ({"mount_id": 78}, "mounted again (mount ID 77, now 78)", ""),  # the same file system, mounted again
        ({"device": 6}, "device was 5", ""),
        ({"fsid": 2}, "fsid was 1", ""),
        ({"uuid": "bb"}, "uuid was aa", "uuid was aa"),  # another disk under the same device number
        ({"uuid": ""}, "", ""),  # unknown is no difference
        ({"type": "ext4"}, "type was xfs", "type was xfs"),
        ({"source": "/dev/sdb1"}, "source was /dev/sda1", ""),  # the same UUID on another loop device
    ],
)
def test_on_one_node(change: dict[str, object], within_a_run: str, since_the_evaluation_began: str) -> None:
    now = replace(HERE, **change)
    for found, expected in (
        (HERE.moved_to(now), within_a_run),
        (now.differs_from(HERE), since_the_evaluation_began),
    ):
        assert (expected in found) if expected else found == ""


@pytest.mark.parametrize(
    ("recorded", "change", "differs"),
    [
        # Device numbers, mount IDs and a node's own disk differ from node to node, and after a reboot.
        (HERE, {"device": 6, "mount_id": 9, "fsid": 2, "source": "/dev/nvme0n1"}, False),
        (HERE, {"type": "ext4"}, True),
        (HERE, {"point": "/"}, True),
        (NFS, {"source": "10.0.0.7:/export/a"}, False),  # another address of the same server
        (NFS, {"source": "10.0.0.1:/export/b"}, True),
        (NFS, {"type": "ext4", "medium": "disk"}, True),
    ],
)
def test_between_nodes(recorded: FileSystem, change: dict[str, object], differs: bool) -> None:
    for place in ({"host": "n2"}, {"boot": "b2"}):
        assert bool(replace(recorded, **place, **change).differs_from(recorded)) is differs


def test_a_disk_keeps_its_uuid_and_memory_does_not() -> None:
    """Another node has another disk; the same host with another UUID after a restart has another one, too."""
    other = replace(HERE, uuid="bb")
    assert replace(other, host="n2").differs_from(HERE) == ""
    assert "uuid was aa" in replace(other, boot="b2").differs_from(HERE)
    memory = replace(HERE, type="tmpfs", source="tmpfs", medium="memory")
    again = replace(memory, uuid="bb", device=6, fsid=2, mount_id=9)  # a container that started again
    assert again.differs_from(memory) == "" and memory.moved_to(again)
    program = replace(HERE, type="fuse", source="/home/data", medium="", uuid="")
    assert replace(program, device=6, fsid=2).differs_from(program) == ""
    assert "source was /home/data" in replace(program, source="/tmp/data").differs_from(program)


def test_a_folder_tells_where_it_lies(stack: Stack) -> None:
    found = check_scratch(stack)
    state = stack.storage.scratch_path().stat()
    assert (found.device, found.point, found.type) == (state.st_dev, stack.storage.mount, stack.storage.type)
    assert found.moved_to(check_scratch(stack)) == "" == found.differs_from(found)
    with Scratch(stack, "x", recorded=found) as scratch:
        assert scratch.file_system == found
    assert recorded_file_systems(Path("/nowhere")) == {}


#: In each, $M is a mount of tmpfs; CODE is run with `stack` on it and a shell in `sh`.
IN_PYTHON = """
mkdir m
mount -t tmpfs -o size=64m first m
export M=$PWD/m
"$PYTHON" -c '
import os, subprocess, sys
from pathlib import Path
from tiercel.errors import RunFailed
from tiercel.runs.scratch import Scratch, _make, check_scratch
from tiercel.site.model import Stack, Storage
mount = os.environ["M"]
stack = Stack("fast", Storage(type="tmpfs", mount=mount, scratch=f"{mount}/user/tiercel", medium="disk"))
sh = lambda command: subprocess.run(command, shell=True, check=True)
try:
    exec(os.environ["CODE"])
    print("no error")
except RunFailed as error:
    print("RunFailed:", error)
sh("while umount -l $M 2>/dev/null; do :; done")
print(sorted(p.name for p in Path(mount).rglob("*")))
'
"""


def behaves(folder: Path, code: str) -> tuple[str, str]:
    """Return what the code came to, and what lies on the parent file system at the end."""
    require_mount("tmpfs")
    ended, parent = run_script(IN_PYTHON, folder, PYTHON=sys.executable, CODE=code).splitlines()[-2:]
    return ended, parent


@pytest.mark.parametrize(
    ("code", "says"),
    [
        # Unmounted before a run: no folder is made on the parent file system.
        ('sh("umount -l $M"); Scratch(stack, "x").__enter__()', "is {mount} mounted?"),
        # In the middle of one; what the engine printed is not used.
        ('with Scratch(stack, "x"): sh("umount -l $M")', "changed during the run: storage fast"),
        ('with Scratch(stack, "x"): sh("mount -o remount,bind,ro $M")', "read-only"),
        # Between the check and the first folder.
        ('was = check_scratch(stack); sh("umount -l $M"); _make(Path(mount) / "a/b", was)', "no longer on"),
        # Replaced by another file system of the same type, in a run and between two.
        ('with Scratch(stack, "x"): sh("umount -l $M; mount -t tmpfs first $M")', "changed during the run"),
        (
            'was = check_scratch(stack); sh("umount -l $M; mount -t tmpfs second $M");'
            'Scratch(stack, "x", recorded=was).__enter__()',
            "not the file system that it was when the evaluation began",
        ),
        # Covered by another mount.
        ('with Scratch(stack, "x"): sh("mount -t tmpfs over $M")', "changed during the run"),
    ],
)  # fmt: skip
def test_a_mount_that_vanishes_or_is_replaced(tmp_path: Path, code: str, says: str) -> None:
    ended, parent = behaves(tmp_path, code)
    assert ended.startswith("RunFailed: ") and says.format(mount=tmp_path / "m") in ended
    assert parent == "[]"


def test_a_file_system_that_is_mounted_again_between_two_runs_is_the_same(tmp_path: Path) -> None:
    require_mount("ext4")
    script = """
    truncate -s 32M image
    mkfs.ext4 -q -F image
    mkdir m
    mount -o loop image m
    "$PYTHON" -c '
import subprocess
from pathlib import Path
from tiercel.runs.scratch import Scratch, check_scratch
from tiercel.site.model import Stack, Storage
point = str(Path("m").resolve())
stack = Stack("disk", Storage(type="ext4", mount=point, scratch=f"{point}/tiercel"))
was = check_scratch(stack)
with Scratch(stack, "one", recorded=was):
    pass
sh = lambda command: subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
device = sh("losetup -j image -O NAME -n").strip()
sh(f"mkdir keep; mount {device} keep; umount m; mount {device} m; umount keep")
with Scratch(stack, "two", recorded=was) as second:
    print(second.file_system.differs_from(was) or "the same")
'
    umount m
    """
    assert run_script(script, tmp_path, PYTHON=sys.executable).strip() == "the same"


@needs_iokernel
def test_no_evaluation_goes_on_upon_another_file_system(project: Project) -> None:
    project.study("tiny", ONE)
    assert project.tiercel("evaluate", "--study", "tiny").returncode == 0
    (raw,) = RawStore(project.results)
    measured = raw.context["file_system"]
    # One under the same name, on another machine: nothing but its type and place can be compared.
    elsewhere = {**measured, "host": "another", "device": measured["device"] + 1}
    # Another file system was there when this run was measured, on this machine and since it started.
    changed, value = ("uuid", "1" * 32) if measured["uuid"] else ("device", measured["device"] + 1)
    before = {**measured, changed: value}
    for recorded, status in ((elsewhere, 0), (before, 2)):
        write_json(raw.folder / "context.json", {**raw.context, "file_system": recorded})
        for options in ([], ["--retry-failed"]):
            said = project.tiercel("evaluate", "--study", "tiny", *options)
            assert said.returncode == status, said.stderr
    assert said.stderr.count("\n") == 1 and raw.folder.name in said.stderr
    assert f"{changed} was {before[changed]}, and is {measured[changed]}" in said.stderr
    # A run that failed gave no number.
    record = read_json(raw.folder / "record.json")
    write_json(raw.folder / "record.json", {**record, "status": "failed", "reason": "tried"})
    said = project.tiercel("evaluate", "--study", "tiny")
    assert said.returncode == 0, said.stderr
    # Moved away, as the line says.
    write_json(raw.folder / "record.json", record)
    project.results.rename(project.root / "moved away")
    said = project.tiercel("evaluate", "--study", "tiny")
    assert said.returncode == 0, said.stderr
    (again,) = RawStore(project.results)
    assert again.context["file_system"]["device"] == measured["device"]
