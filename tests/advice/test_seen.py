"""What the cheap trace says, and which folders are the working set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.advice.seen import read
from tiercel.advice.workset import Folder, after_trace, first_folders, parts_of
from tiercel.errors import UserError
from tiercel.site.model import Site
from tiercel.site.mounts import mount_of, read_mounts

TRACE = r"""7 openat(AT_FDCWD</d>, "in", O_RDONLY|O_CLOEXEC) = 3</d/in>
7 openat(AT_FDCWD</d>, "no", O_RDONLY) = -1 ENOENT (No such file or directory)
8 openat(AT_FDCWD</d>, "part", O_WRONLY|O_CREAT|O_TRUNC, 0666 <unfinished ...>
7 openat(AT_FDCWD</d>, "in", O_RDONLY) = 3</d/in>
8 <... openat resumed>) = 4</d/part>
8 fsync(4</d/part>) = 0
8 rename("part", "sp\40ace") = 0
8 renameat2(AT_FDCWD</d>, "part", AT_FDCWD</d>, "done", RENAME_NOREPLACE) = 0
8 openat(5</d/tmp>, "x", O_RDWR|O_CREAT|O_EXCL, 0600) = 6</d/tmp/x>
8 unlinkat(AT_FDCWD</d>, "tmp/x", 0) = 0
7 openat(AT_FDCWD</d>, "/etc/passwd", O_RDONLY) = 3</etc/passwd>
7 openat(AT_FDCWD</d>, "cut"""


def test_opens_syncs_renames_and_removals(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(TRACE)
    data = read(tmp_path / "log").data()
    assert set(data) == {"/d/in", "/d/part", "/d/done", "/d/tmp/x"}
    assert data["/d/in"].opens == 2 and not data["/d/in"].written
    assert data["/d/part"].syncs == 1 and data["/d/part"].written and data["/d/part"].removed
    assert data["/d/done"].made and not data["/d/done"].removed
    assert data["/d/tmp/x"].made and data["/d/tmp/x"].removed


def test_a_trace_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "log").data() == {}


def test_folders_of_the_command_line(tmp_path: Path) -> None:
    for name in ("work", "data", "code"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "base.db").touch()
    (tmp_path / "code" / "run.py").touch()
    words = [
        "python3",
        str(tmp_path / "code/run.py"),
        f"--base={tmp_path}/data/base.db",
        "/etc/passwd",
        "no/such",
    ]
    work = str(tmp_path / "work")
    assert first_folders(words, work, []) == sorted([str(tmp_path / "data"), work])
    assert first_folders(words, "/", []) == [str(tmp_path / "data")]
    assert first_folders(words, work, [str(tmp_path / "code")]) == [str(tmp_path / "code")]
    with pytest.raises(UserError, match="not this program's own"):
        first_folders(words, work, ["/tmp"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    mount = mount_of(tmp_path, read_mounts())
    assert mount is not None
    main = {"type": mount.type, "mount": str(mount.point), "scratch": str(tmp_path / "scratch")}
    return Site.model_validate({"site": "local", "storages": {"main": main}})


def test_unused_folders_leave_the_set_and_written_ones_join(tmp_path: Path, site: Site) -> None:
    for name in ("used", "unused", "other/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "used" / "in").write_bytes(bytes(100))
    log = tmp_path / "log"
    log.write_text(
        f'7 openat(AT_FDCWD</>, "a", O_RDONLY) = 3<{tmp_path}/used/in>\n'
        f'7 openat(AT_FDCWD</>, "b", O_WRONLY|O_CREAT, 0666) = 3<{tmp_path}/other/deep/new/out>\n'
        '7 openat(AT_FDCWD</>, "c", O_WRONLY|O_CREAT, 0666) = 3</tmp/x>\n'
    )
    first = [Folder(str(tmp_path / name), "main", 100) for name in ("used", "unused")]
    found, outside = after_trace(first, read(log), site, read_mounts())
    # The nearest folder that is there: new/ is made by the program.
    assert [f.path for f in found] == [str(tmp_path / "used"), str(tmp_path / "other/deep")]
    assert outside == ["/tmp"]


@pytest.mark.parametrize(("more", "joins"), [(0, True), (80 << 20, False)])
def test_a_folder_of_which_little_is_read_does_not_join(
    tmp_path: Path, site: Site, more: int, joins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 MB are read, so that 4 * 2 + 64 MB may be copied with them."""
    (tmp_path / "work").mkdir()
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "in").write_bytes(bytes(2 << 20))
    monkeypatch.setattr("tiercel.placement.stage.size_of", lambda path: (2 << 20) + more)
    log = tmp_path / "log"
    log.write_text(
        f'7 openat(AT_FDCWD</>, "a", O_RDONLY) = 3<{tmp_path}/inputs/in>\n'
        f'7 openat(AT_FDCWD</>, "b", O_WRONLY|O_CREAT, 0666) = 3<{tmp_path}/work/out>\n'
    )
    found, _ = after_trace([Folder(str(tmp_path / "work"), "main", 1)], read(log), site, read_mounts())
    assert (str(tmp_path / "inputs") in [f.path for f in found]) is joins


def test_the_folder_with_the_syncs_comes_first(tmp_path: Path) -> None:
    (tmp_path / "log" / "wal").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    trace = tmp_path / "trace"
    trace.write_text(
        f'7 openat(AT_FDCWD</>, "a", O_RDWR|O_CREAT, 0600) = 3<{tmp_path}/tmp/a>\n'
        f'7 unlink("{tmp_path}/tmp/a") = 0\n'
        f'7 openat(AT_FDCWD</>, "b", O_RDWR|O_CREAT, 0600) = 3<{tmp_path}/log/wal/b>\n'
        f"7 fdatasync(3<{tmp_path}/log/wal/b>) = 0\n"
    )
    parts = parts_of([Folder(str(tmp_path), "main", 1)], read(trace))
    assert [p.path for p in parts] == [str(tmp_path / "log/wal"), str(tmp_path / "tmp")]
