"""What a file system has to do, as small programs: each gets folders that show the same files.

``python conformance.py NAME FOLDER...`` runs one. Several folders are several ways to the same server.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

CHECKS: dict[str, Callable[..., None]] = {}
MIB = 1 << 20
#: Above this the preload library moves data.
LARGE = 200_000
BEYOND = 5 << 30


def check(function: Callable[..., None]) -> Callable[..., None]:
    CHECKS[function.__name__] = function
    return function


def in_child(what: Callable[[], int]) -> int:
    """What a forked child's function returns."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = what()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opened(folder: Path, name: str = "f", flags: int = 0) -> int:
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | flags, 0o644)


@check
def each_write_moves_the_position_once(folder: Path) -> None:
    fd = opened(folder)
    for piece in (b"abc", b"def", b"L" * LARGE, b"tail"):
        os.write(fd, piece)
    assert os.lseek(fd, 0, os.SEEK_CUR) == 6 + LARGE + 4
    os.lseek(fd, 0, os.SEEK_SET)
    assert os.read(fd, 6) == b"abcdef"
    assert os.read(fd, LARGE) == b"L" * LARGE
    assert (os.read(fd, 100), os.read(fd, 100)) == (b"tail", b"")


@check
def pread_and_pwrite_leave_the_position(folder: Path) -> None:
    fd = opened(folder)
    os.write(fd, b"12345")
    for size in (0, 3, LARGE):
        os.pwrite(fd, b"x" * size, 7)
        assert os.pread(fd, size, 7) == b"x" * size
        assert os.lseek(fd, 0, os.SEEK_CUR) == 5
    os.pwrite(fd, b"y", 1)
    assert os.pread(fd, 5, 0) == b"1y345"


@check
def appending_writes_at_the_end(folder: Path) -> None:
    first, second = opened(folder, flags=os.O_APPEND), opened(folder, flags=os.O_APPEND)
    expected = b""
    for number in range(6):
        for fd, letter in ((first, b"a"), (second, b"b")):
            piece = letter * (10 if number % 2 else LARGE)
            os.write(fd, piece)
            expected += piece
            assert os.lseek(fd, 0, os.SEEK_CUR) == len(expected)
    os.lseek(first, 0, os.SEEK_SET)
    os.write(first, b"end")
    assert (folder / "f").read_bytes() == expected + b"end"


@check
def appending_can_be_switched_on(folder: Path) -> None:
    fd = opened(folder)
    os.write(fd, b"x" * LARGE)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"y" * LARGE)
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.lseek(fd, 1, os.SEEK_SET)
    os.write(fd, b"z")
    assert (folder / "f").read_bytes() == b"xz" + b"x" * (LARGE - 2) + b"y" * LARGE


@check
def positions_are_shared_with_copies_and_children(folder: Path) -> None:
    fd = opened(folder)
    again = os.dup(fd)
    os.write(fd, b"a" * LARGE)
    os.write(again, b"b" * LARGE)
    assert in_child(lambda: os.write(fd, b"c" * LARGE) - LARGE) == 0
    assert in_child(lambda: os.write(again, b"d") - 1) == 0
    assert os.lseek(fd, 0, os.SEEK_CUR) == 3 * LARGE + 1
    assert (folder / "f").read_bytes() == b"".join(x * LARGE for x in (b"a", b"b", b"c")) + b"d"
    os.lseek(again, 0, os.SEEK_SET)
    assert in_child(lambda: 0 if os.read(fd, LARGE) == b"a" * LARGE else 1) == 0
    assert os.read(again, 2) == b"bb"


@check
def processes_that_share_a_position_do_not_overwrite_each_other(folder: Path) -> None:
    fd, count, size = opened(folder), 20, 70_000
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            for _ in range(count):
                os.write(fd, bytes([65 + number]) * size)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    text = (folder / "f").read_bytes()
    assert len(text) == 4 * count * size
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert sorted(piece[0] for piece in pieces) == sorted([65, 66, 67, 68] * count)
    assert all(piece == piece[:1] * size for piece in pieces)


@check
def descriptors_are_numbers_of_the_kernel(folder: Path) -> None:
    """A number that libc closes and gives out by itself is the new file, not the old one."""
    one = opened(folder, "one")
    os.write(one, b"1" * LARGE)
    os.close(one)
    with (folder / "two").open("wb", buffering=0) as two:
        two.write(b"2" * LARGE)
        os.dup2(two.fileno(), one + 50)
    os.write(one + 50, b"3" * LARGE)
    os.closerange(one + 50, 1000)  # also what a library opened by itself
    with (folder / "three").open("wb", buffering=0) as three:
        three.write(b"4" * LARGE)
    found = {name: (folder / name).read_bytes() for name in ("one", "two", "three")}
    assert found == {"one": b"1" * LARGE, "two": b"2" * LARGE + b"3" * LARGE, "three": b"4" * LARGE}


@check
def wrong_uses_have_their_errors(folder: Path) -> None:
    (folder / "f").write_bytes(b"x" * LARGE)
    reads, writes = os.open(folder / "f", os.O_RDONLY), os.open(folder / "f", os.O_WRONLY)
    for wrong in (lambda: os.write(reads, b"y" * LARGE), lambda: os.read(writes, LARGE)):
        try:
            wrong()
        except OSError as error:
            assert error.errno == errno.EBADF
        else:
            raise AssertionError("it was allowed")
    try:
        os.pread(reads, LARGE, -1)
    except OSError as error:
        assert error.errno == errno.EINVAL


@check
def holes_are_zeros_and_can_be_found(folder: Path) -> None:
    fd = opened(folder)
    os.pwrite(fd, b"x" * LARGE, 4 * MIB)
    assert os.fstat(fd).st_size == 4 * MIB + LARGE
    assert os.pread(fd, LARGE, MIB) == bytes(LARGE)
    data = os.lseek(fd, 0, os.SEEK_DATA)
    assert data in (0, 4 * MIB)
    os.ftruncate(fd, 4 * MIB + 10)
    os.ftruncate(fd, 4 * MIB + 20)
    assert os.pread(fd, 100, 4 * MIB) == b"x" * 10 + bytes(10)
    os.posix_fallocate(fd, 5 * MIB, MIB)
    assert os.fstat(fd).st_size == 6 * MIB
    assert os.pread(fd, 5, 5 * MIB) == bytes(5)


@check
def files_are_larger_than_four_gibibytes(folder: Path) -> None:
    fd = opened(folder)
    os.pwrite(fd, b"e" * LARGE, BEYOND)
    assert os.lseek(fd, 0, os.SEEK_END) == BEYOND + LARGE
    os.write(fd, b"w" * LARGE)
    os.lseek(fd, BEYOND, os.SEEK_SET)
    assert os.read(fd, 2 * LARGE) == b"e" * LARGE + b"w" * LARGE
    assert os.stat(folder / "f").st_size == BEYOND + 2 * LARGE
    assert os.pread(fd, 3, BEYOND - MIB) == bytes(3)


@check
def names_can_be_exchanged_and_kept(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def rename(old: str, new: str, flags: int) -> int:
        done = libc.renameat2(-100, bytes(folder / old), -100, bytes(folder / new), flags)
        return 0 if done == 0 else ctypes.get_errno()

    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    assert rename("a", "b", 1) == errno.EEXIST  # RENAME_NOREPLACE
    assert rename("a", "b", 2) == 0  # RENAME_EXCHANGE
    assert (folder / "a").read_text() == "b"
    assert rename("a", "c", 1) == 0
    os.rename(folder / "b", folder / "c")
    assert os.listdir(folder) == ["c"]
    assert (folder / "c").read_text() == "a"


@check
def files_without_names_stay(folder: Path) -> None:
    fd = opened(folder)
    os.write(fd, b"x" * LARGE)
    os.unlink(folder / "f")
    os.write(fd, b"y" * LARGE)
    assert os.fstat(fd).st_nlink == 0
    assert os.pread(fd, 2 * LARGE, 0) == b"x" * LARGE + b"y" * LARGE


@check
def attributes_of_users_are_kept(folder: Path) -> None:
    (folder / "f").touch()
    os.setxattr(folder / "f", "user.a", b"value")
    assert os.listxattr(folder / "f") == ["user.a"]
    assert os.getxattr(folder / "f", "user.a") == b"value"
    os.removexattr(folder / "f", "user.a")
    assert os.listxattr(folder / "f") == []


@check
def modes_times_and_links(folder: Path) -> None:
    path = folder / "f"
    path.write_bytes(b"x" * LARGE)
    path.chmod(0o640)
    os.utime(path, ns=(1_000_000_007, 2_000_000_009))
    os.link(path, folder / "g")
    os.symlink("f", folder / "s")
    found = os.stat(folder / "g")
    assert (found.st_mode & 0o777, found.st_nlink, found.st_mtime_ns) == (0o640, 2, 2_000_000_009)
    assert os.readlink(folder / "s") == "f"
    with path.open("r+b", buffering=0) as file:
        file.write(b"y" * LARGE)
    assert os.stat(path).st_mtime > 1e9


@check
def a_limit_of_file_sizes_holds(folder: Path) -> None:
    fd = opened(folder)

    def limited() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        assert os.pwrite(fd, b"x" * LARGE, 0) == LARGE
        assert os.pwrite(fd, b"x" * LARGE, LARGE) == 100_000
        try:
            os.pwrite(fd, b"x" * LARGE, 300_000)
        except OSError as error:
            return 0 if error.errno == errno.EFBIG else 1
        return 2

    assert in_child(limited) == 0
    assert os.fstat(fd).st_size == 300_000


@check
def many_threads_use_one_file(folder: Path) -> None:
    fd, wrong = opened(folder), []

    def work(number: int) -> None:
        for turn in range(8):
            data = bytes([number * 16 + turn]) * LARGE
            os.pwrite(fd, data, number * LARGE)
            if os.pread(fd, LARGE, number * LARGE) != data:
                wrong.append(number)

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@check
def what_one_writes_another_reads(*folders: Path) -> None:
    """Kernels drop pages of open and of mapped files before whoever changes the file goes on."""
    for writer in folders:
        for reader in folders:
            fd, other = opened(writer, flags=os.O_TRUNC), opened(reader)
            os.pwrite(fd, b"a" * 8192, 0)
            with mmap.mmap(other, 8192, prot=mmap.PROT_READ) as view:
                for piece in (b"b" * 100, b"c" * 8192, b"d" * LARGE, b"e" * 5):
                    os.pwrite(fd, piece, 0)
                    assert view[:5] == os.pread(other, 5, 0) == piece[:5], (writer, reader)
            os.ftruncate(fd, 3)
            assert os.fstat(other).st_size == 3
            os.close(fd)
            os.close(other)


@check
def what_a_mapping_writes_others_read(*folders: Path) -> None:
    for writer in folders:
        for reader in folders:
            fd, other = opened(writer, flags=os.O_TRUNC), opened(reader)
            os.ftruncate(fd, MIB)
            with mmap.mmap(fd, MIB) as view:
                view[5:10] = b"mapped"[:5]
                if writer is not reader:
                    view.flush()
                # Through the same mount at once, also where the read is large.
                assert os.pread(other, MIB, 0)[5:10] == b"mappe"
                view[MIB - 4 :] = b"last"
                view.flush()
            assert os.pread(other, 4, MIB - 4) == b"last"
            os.close(fd)
            os.close(other)


@check
def appends_of_several_ways_do_not_mix(*folders: Path) -> None:
    fds = [opened(folder, flags=os.O_APPEND) for folder in folders for _ in range(2)]
    for number in range(30):
        for place, fd in enumerate(fds):
            os.write(fd, b"%d" % place * (100 + number))
    text = (folders[0] / "f").read_bytes()
    expected = b"".join(b"%d" % place * (100 + n) for n in range(30) for place in range(len(fds)))
    for folder in folders:
        assert (folder / "f").read_bytes() == expected
    assert text == expected


def _exclude(first: Path, second: Path, take: Callable[[int, int], None]) -> None:
    """A lock that is taken on one way is taken on the other, until it is given up or its holder ends."""
    fd = opened(first)

    def tries() -> int:
        try:
            take(opened(second), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno
        return 0

    take(fd, fcntl.LOCK_EX)
    assert in_child(tries) in (errno.EAGAIN, errno.EACCES)
    take(fd, fcntl.LOCK_UN)
    assert in_child(tries) == 0
    take(fd, fcntl.LOCK_SH)  # waits where what the child held is given up a little later, on another way

    def waits() -> int:
        os.close(fd)
        take(opened(second), fcntl.LOCK_EX)
        return 7

    def interrupted() -> int:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(8))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        return waits()

    assert in_child(interrupted) == 8
    child = os.fork()
    if child == 0:
        os._exit(waits())
    time.sleep(0.1)
    take(fd, fcntl.LOCK_UN)
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@check
def whole_files_are_locked_on_all_ways(*folders: Path) -> None:
    for first in folders:
        for second in folders:
            _exclude(first, second, fcntl.flock)


@check
def parts_of_files_are_locked_on_all_ways(*folders: Path) -> None:
    for first in folders:
        for second in folders:
            _exclude(first, second, fcntl.lockf)
            fd = opened(first)
            fcntl.lockf(fd, fcntl.LOCK_EX, 10, 5)

            def part(start: int, second: Path = second) -> int:
                try:
                    fcntl.lockf(opened(second), fcntl.LOCK_EX | fcntl.LOCK_NB, 5, start)
                except OSError:
                    return 1
                return 0

            assert [in_child(lambda at=at: part(at)) for at in (0, 4, 10, 15)] == [0, 1, 1, 0]  # type: ignore[misc]
            os.close(os.open(second / "f", os.O_RDONLY) if first is second else os.dup(fd))  # gives it up
            if first is second:
                assert in_child(lambda: part(10)) == 0
            os.close(fd)


@check
def one_hundred_thousand_names(folder: Path) -> None:
    count = int(os.environ.get("CONFORMANCE_NAMES", "100000"))
    for number in range(count):
        os.close(os.open(folder / str(number), os.O_CREAT | os.O_WRONLY))
    assert sorted(os.listdir(folder), key=int) == [str(number) for number in range(count)]
    assert sum(entry.stat().st_size for entry in os.scandir(folder)) == 0
    for number in range(count):
        os.unlink(folder / str(number))
    assert os.listdir(folder) == []


if __name__ == "__main__":
    CHECKS[sys.argv[1]](*(Path(folder) for folder in sys.argv[2:]))
