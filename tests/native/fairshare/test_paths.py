"""Paths with dots: up and out of the served tree, and through the root that several servers have together."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import PREFIX, Share

#: Folders below the root, enough that each of two servers has some (all on one: a chance of 2 in 4096).
FOLDERS = sorted(f"d{n}" for n in range(12))


@pytest.fixture
def two(serve: Callable[..., Share], tmp_path: Path) -> tuple[list[Share], dict[str, str]]:
    """Two servers, and the environment of a program that sees both; folders `FOLDERS`, in each a file `f`."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(32))
    servers = [serve("--key", str(key)) for _ in range(2)]
    together = servers[0].environment(server=",".join(str(share.server.socket) for share in servers))
    made = "\n".join(f"mkdir $ROOT/{name}; echo {name} > $ROOT/{name}/f" for name in FOLDERS)
    servers[0].bash(made, env=together)
    assert all(any((share.tree / name).exists() for name in FOLDERS) for share in servers)
    return servers, together


@pytest.mark.parametrize("way", [
    'tar cf - -C $ROOT . | tar t',
    'cd $ROOT; tar cf - . | tar t',
    'cd $ROOT; find .',
    'cd $ROOT/d0; find ..',
    'find $ROOT/d0/../d1/..',
    'cd $ROOT; mkdir "{copy}"; cp -r . "{copy}"; cd "{copy}"; find .',
])  # fmt: skip
def test_the_root_is_whole_by_whatever_name(
    two: tuple[list[Share], dict[str, str]], tmp_path: Path, way: str
) -> None:
    """An archive of `.` had the files of the first server alone, and no error."""
    servers, together = two
    said = servers[0].bash(way.format(copy=tmp_path / "copy"), env=together)
    assert sorted({line.split("/")[-2] for line in said.splitlines() if line.endswith("/f")}) == FOLDERS


def test_what_is_made_by_way_of_another_folder_is_found_by_its_own_name(
    two: tuple[list[Share], dict[str, str]],
) -> None:
    """Else the server of the folder that the path goes through has it, where nobody looks."""
    servers, together = two
    script = "\n".join(
        f"cd $ROOT/{name}; echo {n} > ../new{n}; mkdir ../sub{n}; echo {n} > $ROOT/sub{n}/../sub{n}/g"
        for n, name in enumerate(FOLDERS)
    )
    said = servers[0].bash(
        f"{script}\nfor n in {' '.join(map(str, range(12)))}; do cat $ROOT/new$n $ROOT/sub$n/g; done",
        env=together,
    )
    assert said.split() == [str(n) for n in range(12) for _ in "ab"]


def test_links_are_walked_before_dots(two: tuple[list[Share], dict[str, str]]) -> None:
    """`d0/link/..` is where the link leads, and one up: `a`, not `d0`."""
    servers, together = two
    said = servers[0].bash(
        "mkdir -p $ROOT/d0/a/b; ln -s a/b $ROOT/d0/link; echo deep > $ROOT/d0/a/f; "
        "cat $ROOT/d0/link/../f $ROOT/d0/link/../../f $ROOT/d0/link/../../../d1/f",
        env=together,
    )
    assert said.split() == ["deep", "d0", "d1"]


def test_folders_of_one_server_are_one_device_and_of_two_are_two(
    two: tuple[list[Share], dict[str, str]],
) -> None:
    """Inode numbers of two stores meet, and `diff`, `cp` and `tar` take equal numbers for one file."""
    servers, together = two
    devices = dict(
        line.split() for line in servers[0].bash("cd $ROOT; stat -c '%n %d' d*", env=together).splitlines()
    )
    parts = [{devices[name] for name in FOLDERS if (share.tree / name).exists()} for share in servers]
    assert [len(part) for part in parts] == [1, 1]
    assert parts[0] != parts[1]


OUT = """
import errno, shutil, subprocess
away = sys.argv[1]                                   # an ordinary folder, from the root: /tmp/...
os.makedirs(ROOT + "/a/b"); os.symlink("a/b", ROOT + "/link")
os.chdir(ROOT + "/a")
up = "../.." + away                                  # PREFIX is one below the root, a is two
for path in (up, ROOT + "/.." + away, ROOT + "/a/b/../../.." + away, ROOT + "/link/../../.." + away):
    assert open(path + "/f").read() == "ordinary", path
    assert os.stat(path + "/f").st_size == os.lstat(path + "/f").st_size == 8
    assert sorted(os.listdir(path)) == ["f"] and os.access(path + "/f", os.R_OK)
    assert os.path.realpath(path) == away, os.path.realpath(path)
    with open(path + "/g", "w") as file: file.write("new")
    os.chmod(path + "/g", 0o600); os.truncate(path + "/g", 1); os.utime(path + "/g", (5, 6))
    os.symlink("g", path + "/s"); assert os.readlink(path + "/s") == "g"; os.link(path + "/g", path + "/h")
    found = os.stat(away + "/g")
    assert (found.st_mode & 0o777, found.st_mtime, found.st_size, found.st_nlink) == (0o600, 6, 1, 2)
    os.mkdir(path + "/d"); os.rename(path + "/h", path + "/d/h")
    try: os.rename(path + "/g", "g"); raise SystemExit("renamed out of the tree")
    except OSError as error: assert error.errno == errno.EXDEV
    os.unlink(path + "/s"); os.unlink(path + "/d/h"); os.rmdir(path + "/d"); os.unlink(path + "/g")
shutil.copy(up + "/f", "copied"); assert open(ROOT + "/a/copied").read() == "ordinary"
root = os.open(ROOT + "/a", os.O_RDONLY)
assert os.read(os.open(up + "/f", os.O_RDONLY, dir_fd=root), 9) == b"ordinary"
assert open("../link/../copied").read() == "ordinary"  # by text a/copied as well
open(ROOT + "/top", "w").write("t")
assert open(ROOT + "/link/../../top").read() == "t"    # by text it leaves the tree, walked it does not
assert open(ROOT + "/../" + ROOT + "/top").read() == "t"
"""


def test_dots_lead_out_of_the_served_tree(share: Share, tmp_path: Path) -> None:
    """`../../home/me/input` from a served working directory was said not to exist."""
    assert PREFIX.count("/") == 1
    (away := tmp_path / "away").mkdir()
    (away / "f").write_text("ordinary")
    share.python(OUT, str(away))
