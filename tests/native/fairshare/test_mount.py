"""The FUSE mount: the same files, for what no preload library reaches."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Share, let_through
from .posix_checks import CHECKS
from .test_posix import SCRIPT


@pytest.fixture
def mounted(serve: Callable[..., Share], tmp_path: Path) -> Share:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine has no usable /dev/fuse")
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        pytest.skip("mounting without root needs fusermount3 (package fuse3)")
    place = tmp_path / "mount"
    place.mkdir()
    return serve("--mount", str(place), data=tmp_path / "data")


def mount_of(share: Share) -> Path:
    return share.server.data.parent / "mount"


@pytest.mark.parametrize("name", CHECKS)
def test_posix(mounted: Share, name: str) -> None:
    own = mount_of(mounted) / "own"
    own.mkdir()
    let_through(own)
    argv = [sys.executable, str(SCRIPT), name, str(own)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr


def test_mount_and_library_show_the_same_files(mounted: Share) -> None:
    place = mount_of(mounted)
    (place / "a").write_text("by the mount")
    assert mounted.bash("cat $ROOT/a; echo by the library > $ROOT/b") == "by the mount"
    assert (place / "b").read_text() == "by the library\n"
    mounted.bash("echo more >> $ROOT/b; mv $ROOT/a $ROOT/c")
    assert (place / "b").read_text() == "by the library\nmore\n"
    assert sorted(os.listdir(place)) == ["b", "c"]


def test_shared_writable_mappings(mounted: Share) -> None:
    path = mount_of(mounted) / "f"
    path.write_bytes(b"x" * 8192)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:5] = b"hello"
        view.flush()
    assert mounted.bash("head -c 6 $ROOT/f") == "hellox"


def test_programs_can_be_started_from_it(mounted: Share) -> None:
    program = mount_of(mounted) / "program"
    shutil.copy("/bin/true", program)
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_other_users_have_their_own_rights(mounted: Share, as_root: None) -> None:
    place = mount_of(mounted)
    let_through(place)
    (place / "private").write_text("secret")
    os.chmod(place / "private", 0o600)
    code = f"cat {place}/private; echo mine > {place}/own && cat {place}/own"
    done = subprocess.run(
        ["sh", "-c", code],
        user=54321,
        group=54321,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Permission denied" in done.stderr
    assert done.stdout == "mine\n"
    assert os.stat(mounted.tree / "own").st_uid == 54321
