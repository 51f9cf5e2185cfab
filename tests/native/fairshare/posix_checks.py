"""Checks of POSIX behaviour, each on an empty folder: `python posix_checks.py NAME FOLDER`.

They run through the preload library and, as their own control, on an ordinary folder.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKS: dict[str, Callable[[Path], None]] = {}


def check(function: Callable[[Path], None]) -> Callable[[Path], None]:
    CHECKS[function.__name__] = function
    return function


def fails(number: int, call: Callable[..., Any], *arguments: Any, **more: Any) -> None:
    try:
        call(*arguments, **more)
    except OSError as error:
        assert error.errno == number, f"{errno.errorcode[error.errno or 0]}, not {errno.errorcode[number]}"
    else:
        raise AssertionError(f"succeeded, where {errno.errorcode[number]} was due")


@check
def rename_replaces_a_file_and_keeps_an_open_one(root: Path) -> None:
    (root / "new").write_text("new")
    (root / "old").write_text("old")
    with (root / "old").open() as old:
        os.rename(root / "new", root / "old")
        assert (root / "old").read_text() == "new"
        assert old.read() == "old"
    assert os.listdir(root) == ["old"]


@check
def rename_checks_kinds(root: Path) -> None:
    (root / "file").write_text("x")
    (root / "dir").mkdir()
    (root / "full").mkdir()
    (root / "full" / "inside").write_text("x")
    fails(errno.EISDIR, os.rename, root / "file", root / "dir")
    fails(errno.ENOTDIR, os.rename, root / "dir", root / "file")
    fails(errno.ENOTEMPTY, os.rename, root / "dir", root / "full")
    fails(errno.EINVAL, os.rename, root / "dir", root / "dir" / "below")
    fails(errno.ENOENT, os.rename, root / "absent", root / "file")


@check
def an_unlinked_file_lives_while_it_is_open(root: Path) -> None:
    descriptor = os.open(root / "f", os.O_CREAT | os.O_RDWR, 0o600)
    os.write(descriptor, b"still here")
    os.unlink(root / "f")
    assert not (root / "f").exists()
    assert os.pread(descriptor, 100, 0) == b"still here"
    os.write(descriptor, b", and written")
    assert os.fstat(descriptor).st_size == 23
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)


@check
def o_excl_and_o_creat(root: Path) -> None:
    os.close(os.open(root / "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    fails(errno.EEXIST, os.open, root / "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.symlink("nowhere", root / "l")
    fails(errno.EEXIST, os.open, root / "l", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails(errno.ENOENT, os.open, root / "l", os.O_RDONLY)
    fails(errno.ELOOP, os.open, root / "l", os.O_RDONLY | os.O_NOFOLLOW)
    fails(errno.EISDIR, os.open, root, os.O_WRONLY)
    fails(errno.ENOTDIR, os.open, root / "f", os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.ENOTDIR, os.open, root / "f" / "below", os.O_RDONLY)
    fails(errno.ENAMETOOLONG, os.open, root / ("n" * 256), os.O_RDONLY | os.O_CREAT)


@check
def truncation_and_holes(root: Path) -> None:
    with (root / "f").open("w+b", buffering=0) as f:
        f.write(b"a" * 100)
        f.truncate(10)
        assert f.seek(0, os.SEEK_END) == 10
        f.truncate(1_000_000)
        assert os.pread(f.fileno(), 20, 5) == b"a" * 5 + bytes(15)
        os.pwrite(f.fileno(), b"end", 5_000_000)
        assert os.fstat(f.fileno()).st_size == 5_000_003
        assert os.pread(f.fileno(), 100, 3_000_000) == bytes(100)
        assert os.pread(f.fileno(), 100, 5_000_001) == b"nd"
        assert os.pread(f.fileno(), 100, 6_000_000) == b""
    os.truncate(root / "f", 3)
    assert (root / "f").read_bytes() == b"aaa"
    with (root / "f").open("rb") as f:
        fails(errno.EINVAL, os.ftruncate, f.fileno(), 0)
    fails(errno.EISDIR, os.truncate, root, 0)


@check
def large_data_comes_back_whatever_was_truncated(root: Path) -> None:
    """Past the sizes that a request holds, over mapped parts of the file, and after they have gone."""
    data = bytes(range(256)) * 20_000  # 5.12 MB
    descriptor = os.open(root / "f", os.O_CREAT | os.O_RDWR, 0o600)
    for _ in range(3):
        assert os.pwrite(descriptor, data, 0) == len(data)
        assert os.pread(descriptor, len(data) + 10, 0) == data
    assert os.pwrite(descriptor, b"X" * 300_000, 1_000_001) == 300_000
    expected = data[:1_000_001] + b"X" * 300_000 + data[1_300_001:]
    assert os.pread(descriptor, len(data), 0) == expected
    os.ftruncate(descriptor, 1_000_000)
    assert os.pread(descriptor, len(data), 0) == expected[:1_000_000]
    os.ftruncate(descriptor, 2_000_000)
    assert os.pread(descriptor, len(data), 0) == expected[:1_000_000] + bytes(1_000_000)
    with (root / "f").open("r+b") as again:  # O_TRUNC behind the first descriptor's back
        os.close(os.open(root / "f", os.O_WRONLY | os.O_TRUNC))
        assert again.read() == b""
    assert os.pread(descriptor, 10, 0) == b""
    os.close(descriptor)


@check
def a_copy_within_a_file(root: Path) -> None:
    with (root / "f").open("w+b") as file:
        file.write(b"0123456789")
        file.flush()
        fd = file.fileno()
        fails(errno.EINVAL, os.copy_file_range, fd, fd, 5, 0, 4)
        fails(errno.EINVAL, os.copy_file_range, fd, fd, 5, 4, 0)
        assert os.copy_file_range(fd, fd, 5, 0, 5) == 5
        assert os.copy_file_range(fd, fd, 1 << 30, 6, 20) == 4  # no further than its end
        assert os.pread(fd, 99, 0) == b"0123401234" + bytes(10) + b"1234"


@check
def appending_from_many_processes_loses_nothing(root: Path) -> None:
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            descriptor = os.open(root / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            for line in range(200):
                os.write(descriptor, f"{number} {line:04}\n".encode())
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    lines = (root / "log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{n} {i:04}" for n in range(4) for i in range(200))


@check
def processes_share_a_position(root: Path) -> None:
    (root / "f").write_bytes(b"abcdefghij")
    descriptor = os.open(root / "f", os.O_RDWR)
    assert os.read(descriptor, 2) == b"ab"
    child = os.fork()
    if child == 0:
        assert os.read(descriptor, 3) == b"cde"
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(descriptor, 1) == b"f"
    copy = os.dup(descriptor)
    assert os.lseek(copy, 1, os.SEEK_CUR) == 7
    assert os.read(descriptor, 10) == b"hij"
    os.close(descriptor)
    assert os.lseek(copy, 0, os.SEEK_SET) == 0
    os.set_inheritable(copy, True)
    code = f"import os; os.write({copy}, b'XY')"
    subprocess.run([sys.executable, "-c", code], check=True, close_fds=False)
    assert os.read(copy, 10) == b"cdefghij"
    assert (root / "f").read_bytes() == b"XYcdefghij"


@check
def a_child_keeps_what_its_parent_closed(root: Path) -> None:
    with (root / "out").open("w") as out:
        child = subprocess.Popen(["sh", "-c", "sleep 0.3; echo late"], stdout=out)
    os.unlink(root / "out")  # and the name is gone too
    assert child.wait() == 0
    with (root / "out2").open("w") as out:
        child = subprocess.Popen(["sh", "-c", "sleep 0.3; echo late"], stdout=out)
    assert child.wait() == 0
    assert (root / "out2").read_text() == "late\n"


@check
def directories(root: Path) -> None:
    (root / "d").mkdir()
    fails(errno.EEXIST, os.mkdir, root / "d")
    fails(errno.ENOENT, os.mkdir, root / "x" / "y")
    (root / "d" / "f").write_text("x")
    fails(errno.ENOTEMPTY, os.rmdir, root / "d")
    fails(errno.ENOTDIR, os.rmdir, root / "d" / "f")
    fails(errno.EISDIR, os.unlink, root / "d")
    fails(errno.ENOTDIR, os.listdir, root / "d" / "f")
    for number in range(500):
        (root / "d" / f"entry-with-a-longer-name-{number:04}").touch()
    names = os.listdir(root / "d")
    assert len(names) == len(set(names)) == 501
    with os.scandir(root / "d") as entries:
        assert all(entry.is_file() for entry in entries)
    for name in names:
        os.unlink(root / "d" / name)
    os.rmdir(root / "d")
    assert os.listdir(root) == []


@check
def relative_paths_and_directory_descriptors(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    os.chdir(root / "a")
    assert os.getcwd() == str(root / "a")
    Path("b/f").write_text("x")
    assert Path("../a/b/f").read_text() == "x"
    folder = os.open("b", os.O_RDONLY | os.O_DIRECTORY)
    assert os.stat("f", dir_fd=folder).st_size == 1
    os.rename(root / "a", root / "moved")  # the descriptor stays where it was
    assert os.stat("f", dir_fd=folder).st_size == 1
    os.unlink("f", dir_fd=folder)
    assert os.listdir(folder) == []
    os.fchdir(folder)
    assert os.getcwd() == str(root / "moved" / "b")
    os.chdir("/")
    assert os.getcwd() == "/"
    fails(errno.ENOENT, os.chdir, root / "absent")


@check
def links(root: Path) -> None:
    (root / "f").write_text("content")
    os.link(root / "f", root / "hard")
    assert os.stat(root / "hard").st_nlink == 2
    assert os.stat(root / "hard").st_ino == os.stat(root / "f").st_ino
    os.symlink("f", root / "soft")
    os.symlink(root / "f", root / "absolute")
    assert os.readlink(root / "soft") == "f"
    assert os.readlink(root / "absolute") == str(root / "f")
    assert (root / "soft").read_text() == (root / "absolute").read_text() == "content"
    assert stat.S_ISLNK(os.lstat(root / "soft").st_mode)
    assert os.path.realpath(root / "absolute") == str(root / "f")
    os.symlink("/etc/hostname", root / "outside")
    assert os.readlink(root / "outside") == "/etc/hostname"
    os.symlink("loop", root / "loop")
    fails(errno.ELOOP, os.stat, root / "loop")
    fails(errno.EINVAL, os.readlink, root / "f")
    fails(errno.EEXIST, os.link, root / "f", root / "hard")
    fails(errno.EEXIST, os.symlink, "x", root / "soft")


@check
def modes_times_and_umask(root: Path) -> None:
    os.umask(0o027)
    os.close(os.open(root / "f", os.O_CREAT | os.O_WRONLY, 0o777))
    assert stat.S_IMODE(os.stat(root / "f").st_mode) == 0o750
    os.mkdir(root / "d", 0o777)
    assert stat.S_IMODE(os.stat(root / "d").st_mode) == 0o750
    os.chmod(root / "f", 0o640)
    assert stat.S_IMODE(os.stat(root / "f").st_mode) == 0o640
    os.utime(root / "f", ns=(1_000_000_001, 2_000_000_002))
    found = os.stat(root / "f")
    assert (found.st_atime_ns, found.st_mtime_ns) == (1_000_000_001, 2_000_000_002)
    before = time.time()
    with (root / "f").open("r+b") as f:
        f.write(b"x" * 400_000)
    assert os.stat(root / "f").st_mtime > before - 5
    assert os.stat(root / "f").st_uid == os.geteuid()


@check
def access_modes_of_descriptors(root: Path) -> None:
    (root / "f").write_text("x")
    reader, writer = os.open(root / "f", os.O_RDONLY), os.open(root / "f", os.O_WRONLY)
    fails(errno.EBADF, os.write, reader, b"x")
    fails(errno.EBADF, os.read, writer, 1)
    os.close(reader)
    fails(errno.EBADF, os.read, reader, 1)
    fails(errno.EINVAL, os.lseek, writer, -1, os.SEEK_SET)
    fails(errno.EINVAL, os.pread, os.open(root / "f", os.O_RDONLY), 1, -1)


@check
def record_locks(root: Path) -> None:
    descriptor = os.open(root / "f", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.lockf(descriptor, fcntl.LOCK_EX, 10, 0)
    code = (
        "import fcntl, os, sys\n"
        "d = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.lockf(d, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)\n"  # beside it
        "try: fcntl.lockf(d, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 9)\n"
        "except OSError as e: sys.exit(0 if e.errno in (11, 13) else 2)\n"
        "sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(root / "f")], check=False).returncode == 0
    os.close(os.open(root / "f", os.O_RDONLY))  # POSIX: closing any descriptor of it frees the locks
    assert subprocess.run([sys.executable, "-c", code, str(root / "f")], check=False).returncode == 3


@check
def flock_excludes_and_waits(root: Path) -> None:
    first, second = (os.open(root / "f", os.O_CREAT | os.O_RDWR, 0o600) for _ in range(2))
    fcntl.flock(first, fcntl.LOCK_EX)
    fails(errno.EWOULDBLOCK, fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    threading.Timer(0.2, fcntl.flock, (first, fcntl.LOCK_UN)).start()
    fcntl.flock(second, fcntl.LOCK_EX)


@check
def extended_attributes(root: Path) -> None:
    (root / "f").touch()
    try:
        os.setxattr(root / "f", "user.colour", b"blue")
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP  # the file system below has none
        return
    assert os.getxattr(root / "f", "user.colour") == b"blue"
    assert os.listxattr(root / "f") == ["user.colour"]
    os.removexattr(root / "f", "user.colour")
    fails(errno.ENODATA, os.getxattr, root / "f", "user.colour")


@check
def a_thousand_open_files(root: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    files = [(root / f"f{number}").open("w+") for number in range(1000)]
    for number, file in enumerate(files):
        file.write(str(number))
    for file in files:
        file.flush()
    for number, file in enumerate(files):
        file.seek(0)
        assert file.read() == str(number)


@check
def threads_share_a_session(root: Path) -> None:
    def work(number: int) -> None:
        data = bytes([number]) * 300_000
        with (root / f"t{number}").open("w+b") as file:
            for _ in range(5):
                file.seek(0)
                file.write(data)
                file.seek(0)
                if file.read() != data:
                    problems.append(number)
        done.append(number)

    problems: list[int] = []
    done: list[int] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(done) == 24


@check
def a_signal_does_not_tear_a_write(root: Path) -> None:
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    data = os.urandom(3_000_000)
    with (root / "f").open("wb") as file:
        for _ in range(10):
            file.seek(0)
            file.write(data)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert (root / "f").read_bytes() == data


@check
def reading_by_mapping(root: Path) -> None:
    (root / "f").write_bytes(b"mapped" * 1000)
    with (root / "f").open("rb") as file:
        try:
            view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except OSError as error:  # a shared one shows what is written later, or is refused
            assert error.errno == errno.ENODEV
        else:
            with view, (root / "f").open("r+b", buffering=0) as writer:
                assert view[:6] == b"mapped"
                writer.write(b"MAPPED")
                assert view[:6] == b"MAPPED"
                writer.seek(0)
                writer.write(b"mapped")
        with mmap.mmap(
            file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
        ) as view:
            view[0:1] = b"M"
    assert (root / "f").read_bytes()[:6] == b"mapped"


def as_user(user: int, what: Callable[[], Any]) -> Any:
    """Do something as another user, who is in no group of root's. For checks that only root can make."""
    os.setgroups([])
    os.setegid(user)
    os.seteuid(user)
    try:
        return what()
    finally:
        os.seteuid(0)
        os.setegid(0)


@check
def names_of_all_kinds(root: Path) -> None:
    kinds: dict[str, Callable[[Path], Any]] = {
        "fifo": lambda path: os.mkfifo(path, 0o640),
        "socket": lambda path: os.mknod(path, 0o640 | stat.S_IFSOCK),
        "file": lambda path: os.mknod(path, 0o640 | stat.S_IFREG),
    }
    if os.geteuid() == 0:
        kinds["device"] = lambda path: os.mknod(path, 0o640 | stat.S_IFCHR, os.makedev(300, 70000))
    for name, make in kinds.items():
        make(root / name)
        found = os.lstat(root / name)
        assert stat.S_IMODE(found.st_mode) == 0o640, name
        fails(errno.EEXIST, make, root / name)
        fails(errno.ENOTDIR, os.stat, root / name / "below")
        fails(errno.ENOTDIR, os.rmdir, root / name)
        os.chmod(root / name, 0o600)
        os.link(root / name, root / "second")
        assert (os.stat(root / name).st_nlink, stat.S_IMODE(os.stat(root / "second").st_mode)) == (2, 0o600)
        os.rename(root / "second", root / "third")
        assert os.lstat(root / "third").st_ino == found.st_ino
        os.unlink(root / "third")
        if name == "device":
            assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (300, 70000)
    assert sorted(os.listdir(root)) == sorted(kinds)


@check
def dots_at_the_end(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    text = str(root / "d" / "e")
    fails(errno.EINVAL, os.rmdir, text + "/.")
    fails(errno.ENOTEMPTY, os.rmdir, text + "/..")
    fails(errno.EBUSY, os.rename, text + "/.", root / "x")
    fails(errno.EBUSY, os.rename, text + "/..", root / "x")
    fails(errno.EEXIST, os.mkdir, text + "/.")
    fails(errno.EEXIST, os.mkdir, text + "/..")
    assert os.stat(text + "/.").st_ino == os.stat(text).st_ino
    assert os.stat(text + "/..").st_ino == os.stat(root / "d").st_ino
    assert os.listdir(text + "/..") == ["e"]


@check
def a_tree_deeper_than_its_path_may_be_long(root: Path) -> None:
    """rm goes down and up again by open folders, and removes each before its parent is read on."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for depth in range(14):
        name = f"{depth:02}" + "x" * 200
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(folder)
        folder = below
    up = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    assert sorted(os.listdir(up)) == sorted([name, "f"])
    (first,) = os.listdir(root)
    subprocess.run(["rm", "-r", str(root / first)], check=True)
    assert os.listdir(root) == []


@check
def names_as_long_as_may_be(root: Path) -> None:
    (root / ("n" * 255)).touch()
    os.rename(root / ("n" * 255), root / ("m" * 255))
    for call in (os.mkdir, os.mkfifo, os.rmdir, os.unlink, os.stat):
        fails(errno.ENAMETOOLONG, call, root / ("n" * 256))
    fails(errno.ENAMETOOLONG, os.rename, root / ("m" * 255), root / ("n" * 256))
    fails(errno.ENAMETOOLONG, os.symlink, "x", root / ("n" * 256))
    assert os.listdir(root) == ["m" * 255]


@check
def changes_are_seen_in_times(root: Path) -> None:
    def stamps(path: Path) -> tuple[int, int]:
        found = os.lstat(path)
        return found.st_mtime_ns, found.st_ctime_ns

    def changed(path: Path, call: Callable[..., Any], *arguments: Any, data: bool = False) -> None:
        before = stamps(path)
        for _ in range(100):  # the clock of a file system ticks every few milliseconds
            time.sleep(0.02)
            call(*arguments)
            after = stamps(path)
            if after[1] > before[1]:
                break
        assert after[1] > before[1]
        assert (after[0] > before[0]) == data

    (root / "f").touch()
    changed(root / "f", os.chmod, root / "f", 0o600)
    changed(root / "f", os.truncate, root / "f", 5, data=True)
    changed(root / "f", os.link, root / "f", root / "g")
    changed(root / "f", os.unlink, root / "g")
    changed(root, os.rename, root / "f", root / "h", data=True)
    changed(root, os.mkdir, root / "d", data=True)
    changed(root, os.mkfifo, root / "p", data=True)
    assert os.stat(root).st_nlink == 3
    changed(root, os.rmdir, root / "d", data=True)
    assert os.stat(root).st_nlink == 2


@check
def the_same_file_under_two_names_is_not_renamed(root: Path) -> None:
    (root / "a").write_text("x")
    os.link(root / "a", root / "b")
    os.rename(root / "a", root / "b")
    assert sorted(os.listdir(root)) == ["a", "b"]


@check
def sticky_folders(root: Path) -> None:
    if os.geteuid() != 0:
        return
    (root / "d").mkdir()
    os.chmod(root / "d", 0o1777)
    (root / "d" / "roots").touch()
    as_user(54321, (root / "d" / "own").touch)
    for call in (os.unlink, lambda path: os.rename(path, root / "d" / "x")):
        fails(errno.EPERM, as_user, 54321, lambda call=call: call(root / "d" / "roots"))
        fails(errno.EPERM, as_user, 54322, lambda call=call: call(root / "d" / "own"))
    as_user(54321, (root / "d" / "own").unlink)
    assert os.listdir(root / "d") == ["roots"]


@check
def owners_alone_change_modes_times_and_groups(root: Path) -> None:
    if os.geteuid() != 0:
        return
    (root / "f").touch()
    os.chmod(root / "f", 0o666)
    for call in (
        lambda: os.chmod(root / "f", 0o600),
        lambda: os.chown(root / "f", 54321, -1),
        lambda: os.chown(root / "f", -1, 54321),
        lambda: os.utime(root / "f", (1, 1)),
    ):
        fails(errno.EPERM, as_user, 54321, call)
    as_user(54321, lambda: os.utime(root / "f"))  # to now: who may write may
    os.chown(root / "f", 54321, 54321)
    os.chmod(root / "f", 0o6755)
    as_user(54321, lambda: os.chown(root / "f", -1, 54321))
    assert stat.S_IMODE(os.stat(root / "f").st_mode) == 0o755


@check
def who_writes_takes_set_user_id_away(root: Path) -> None:
    if os.geteuid() != 0:
        return

    def write(flags: int) -> None:
        descriptor = os.open(root / "f", flags)
        if not flags & os.O_TRUNC:
            os.write(descriptor, b"x")
        os.close(descriptor)

    (root / "f").write_text("xyz")
    for how in (lambda: write(os.O_WRONLY), lambda: write(os.O_RDWR), lambda: os.truncate(root / "f", 1)):
        os.chmod(root / "f", 0o6777)
        as_user(54321, how)
        assert stat.S_IMODE(os.stat(root / "f").st_mode) == 0o777


@check
def fifos_have_rights(root: Path) -> None:
    if os.geteuid() != 0:
        return
    os.mkfifo(root / "p", 0o600)
    os.chmod(root / "p", 0o604)
    try:
        reader = os.open(root / "p", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP  # names alone, by the library
        return
    fails(errno.EACCES, as_user, 54321, lambda: os.open(root / "p", os.O_WRONLY | os.O_NONBLOCK))
    os.close(as_user(54321, lambda: os.open(root / "p", os.O_RDONLY | os.O_NONBLOCK)))
    os.chmod(root / "p", 0o600)
    fails(errno.EACCES, as_user, 54321, lambda: os.open(root / "p", os.O_RDONLY | os.O_NONBLOCK))
    writer = os.open(root / "p", os.O_WRONLY)
    os.write(writer, b"through")
    assert os.read(reader, 10) == b"through"


@check
def sockets_have_rights(root: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(str(root / "s"))
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP  # no socket lies behind a name of the library's
        return
    server.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(root / "s"))
    if os.geteuid() == 0:
        os.chmod(root / "s", 0o755)  # who connects must be allowed to write
        with socket.socket(socket.AF_UNIX) as client:
            fails(errno.EACCES, as_user, 54321, lambda: client.connect(str(root / "s")))


if __name__ == "__main__":
    name, where = sys.argv[1:]
    CHECKS[name](Path(where))
