"""The scratch folder: made by us, marked as ours, nothing else removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.runs.scratch import Scratch, check_scratch, leftovers, remove_run_folder
from tiercel.site.model import Stack, Storage

from ..single_run import stack_on


def test_a_folder_without_our_marker_is_left_alone(stack: Stack) -> None:
    folder = stack.storage.scratch_path() / "tiercel-run-x"
    folder.mkdir()
    (folder / "theirs").touch()
    with pytest.raises(UserError, match=r"has no \.tiercel-run marker"), Scratch(stack, "x"):
        pass
    assert (folder / "theirs").exists()


def test_a_link_with_our_name_is_left_alone(stack: Stack, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / ".tiercel-run").touch()
    (target / "data").mkdir()
    link = stack.storage.scratch_path() / "tiercel-run-x"
    link.symlink_to(target)
    with pytest.raises(UserError, match="not removed"):
        remove_run_folder(link)
    assert (target / "data").exists()
    assert leftovers(stack) == []


def test_links_inside_the_data_are_not_followed(stack: Stack, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    with Scratch(stack, "x") as scratch:
        (scratch.data / "link").symlink_to(precious)
    assert (precious / "file").exists()


def test_what_a_killed_run_left_is_found_and_replaced(stack: Stack) -> None:
    Scratch(stack, "x").__enter__()
    assert [p.name for p in leftovers(stack)] == ["tiercel-run-x"]
    with Scratch(stack, "x") as scratch:
        assert list(scratch.data.iterdir()) == []
    assert leftovers(stack) == []


def test_killed_between_folder_and_marker(stack: Stack) -> None:
    (stack.storage.scratch_path() / "tiercel-run-x").mkdir()
    with Scratch(stack, "x"):
        pass
    assert leftovers(stack) == []


def test_a_mount_that_is_not_there(tmp_path: Path) -> None:
    absent = Stack("gpfs", Storage(type="gpfs", mount="/p/gpfs1", scratch=str(tmp_path / "s")))
    with pytest.raises(UserError, match=r"storage gpfs: .*not on /p/gpfs1: is /p/gpfs1 mounted\?"):
        check_scratch(absent)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o500)
    with pytest.raises(UserError, match="no permission to write"):
        check_scratch(stack_on(tmp_path / "s"))


def test_a_file_in_the_way(tmp_path: Path) -> None:
    stack = stack_on(tmp_path)
    (tmp_path / "f").touch()
    storage = stack.storage.model_copy(update={"scratch": str(tmp_path / "f")})
    with pytest.raises(UserError, match="is not a folder"):
        check_scratch(Stack("main", storage))


#: Makes `data`, and a file in it, anew as long as its run's folder is there.
WRITER = """
import os, sys, time
for n in range(100):
    try:
        if not os.path.isdir("data"): os.mkdir("data")
        open(f"data/{n}", "w").close()
    except OSError: pass
    time.sleep(0.004)
"""


def test_a_dying_process_that_still_writes(tmp_path: Path) -> None:
    folder = tmp_path / "tiercel-run-x"
    (folder / "data").mkdir(parents=True)
    (folder / ".tiercel-run").touch()
    with subprocess.Popen([sys.executable, "-c", WRITER], cwd=folder) as writer:
        while not (folder / "data" / "3").exists():
            time.sleep(0.001)
        remove_run_folder(folder)
        # Gone; or still ours, so that whoever comes next may remove it.
        assert not folder.exists() or (folder / ".tiercel-run").exists()
        writer.wait(30)
    if folder.exists():
        remove_run_folder(folder)
    assert not folder.exists()
