"""Files in memory: what programs map, and what the server maps to copy from and to."""

from __future__ import annotations

import ctypes.util
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import Share
from .users import ALICE, BOB, act, as_user

SIZE = 1 << 20


def test_sqlite_with_mmap_size_loses_no_update(share: Share) -> None:
    """A process has read the database through its memory; another adds 5, then the first one 1."""
    said = share.python("""
import sqlite3, subprocess
path = ROOT + "/db"
def connected(): return sqlite3.connect(path, isolation_level=None, timeout=30)
db = connected()
db.execute("CREATE TABLE counted (n INTEGER, filling TEXT)")
db.execute("INSERT INTO counted VALUES (0, ?)", ("x" * 100000,))
db.close()
db = connected()
assert db.execute("PRAGMA mmap_size=268435456").fetchone() == (268435456,)
assert db.execute("SELECT n FROM counted").fetchone() == (0,)
more = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('UPDATE counted SET n=n+5')"
subprocess.run([sys.executable, "-c", more + "; db.commit()", path], check=True)
print(db.execute("SELECT n FROM counted").fetchone()[0])
db.execute("UPDATE counted SET n = n + 1")
fresh = connected()
for asked in ("SELECT n FROM counted", "PRAGMA integrity_check"): print(fresh.execute(asked).fetchone()[0])
""")
    assert said.split() == ["5", "6", "ok"]


def test_lmdb_loses_nothing(share: Share) -> None:
    """It reads what it wrote through a shared mapping, without locks of its own."""
    if not ctypes.util.find_library("lmdb"):
        pytest.skip("this machine has no liblmdb")
    said = share.python("""
import ctypes, ctypes.util
lib = ctypes.CDLL(ctypes.util.find_library("lmdb"))
class Value(ctypes.Structure): _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]
def value(text): return Value(len(text), text)
NOLOCK, env, txn, dbi = 0x400000, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
os.mkdir(ROOT + "/lmdb")
lib.mdb_env_create(ctypes.byref(env))
opened = lib.mdb_env_open(env, (ROOT + "/lmdb").encode(), NOLOCK, 0o644)
assert opened == 0
for n in range(300):
    assert lib.mdb_txn_begin(env, None, 0, ctypes.byref(txn)) == 0
    assert lib.mdb_dbi_open(txn, None, 0, ctypes.byref(dbi)) == 0
    key, data = value(b"%06d" % n), value(b"%06d" % n)
    assert lib.mdb_put(txn, dbi, ctypes.byref(key), ctypes.byref(data), 0) == 0
    assert lib.mdb_txn_commit(txn) == 0
lib.mdb_txn_begin(env, None, 0x20000, ctypes.byref(txn))
found = 0
for n in range(300):
    key, data = value(b"%06d" % n), Value()
    found += lib.mdb_get(txn, dbi, ctypes.byref(key), ctypes.byref(data)) == 0
print("found", found)
""")
    assert said.split() == ["found", "300"]


def mapped(share: Share, name: str) -> bool:
    """Whether the server has a file in its memory."""
    return f"/tree/{name}" in Path(f"/proc/{share.server.process.pid}/maps").read_text()


READ = """
f = os.open(ROOT + "/f", os.O_RDONLY)
for _ in range(4): assert len(os.pread(f, 1 << 20, 0)) == 1 << 20
"""


@contextmanager
def reading(share: Share) -> Iterator[None]:
    """While a process has read a file again and again, and holds it open."""
    code = f"import os\nROOT = {str(share.root)!r}\n{READ}\nprint('read', flush=True); input()"
    holder = share.start([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "read\n"
    yield
    holder.communicate("\n")


def test_reading_changes_no_time(share: Share) -> None:
    """A page that is only read stays clean, in the server's memory too."""
    (share.tree / "f").write_bytes(os.urandom(SIZE))
    os.sync()
    os.utime(share.tree / "f", (1e9, 1e9))
    before = os.stat(share.tree / "f")
    with reading(share):
        assert mapped(share, "f")
    after = os.stat(share.tree / "f")
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


def test_who_may_only_read_does_not_keep_others_from_the_fast_way(open_to_all: Callable[..., Share]) -> None:
    share = open_to_all()
    (share.tree / "f").write_bytes(os.urandom(SIZE))
    os.chmod(share.tree / "f", 0o644)
    code = as_user(share, ALICE, READ + "print('read', flush=True); sys.stdin.readline()")
    with share.start([sys.executable, "-c", code], stdin=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "read\n"
        with reading(share):
            assert mapped(share, "f")
        reader.communicate("\n")


def test_a_write_by_who_does_not_own_the_file_sets_its_time(open_to_all: Callable[..., Share]) -> None:
    """On tmpfs too, where nothing but the call that the server makes does so."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("this machine has no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        share = open_to_all(data=Path(folder) / "data")
        path = share.tree / "f"
        path.write_bytes(bytes(SIZE))
        os.chmod(path, 0o666)
        code = f"""
f = os.open(ROOT + "/f", os.O_RDWR)
for _ in range(3): os.pwrite(f, b"y" * {SIZE}, 0)
os.pread(f, {SIZE}, 0)
before = os.fstat(f).st_mtime_ns
time.sleep(0.05)
os.pwrite(f, b"z" * {SIZE}, 0)
print(os.fstat(f).st_mtime_ns > before)
"""
        assert act(share, ALICE, code) == "True\n"


def test_a_write_takes_away_the_right_to_run_as_the_owner(open_to_all: Callable[..., Share]) -> None:
    """Of a file that got it by name, while somebody writes there all the time."""
    share = open_to_all()
    path = share.tree / "program"
    path.write_bytes(bytes(SIZE))
    os.chown(path, ALICE, ALICE)
    os.chmod(path, 0o666)
    code = f"""
f = os.open(ROOT + "/program", os.O_RDWR)
for _ in range(3): os.pwrite(f, b"y" * {SIZE}, 0)
print("mapped", flush=True); sys.stdin.readline()
os.pwrite(f, b"z" * {SIZE}, 0)
"""
    writer = share.start([sys.executable, "-c", as_user(share, BOB, code)], stdin=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "mapped\n"
    assert mapped(share, "program")
    act(share, ALICE, 'os.chmod(ROOT + "/program", 0o4777)')
    assert stat.S_IMODE(path.stat().st_mode) == 0o4777
    writer.communicate("\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


def test_a_path_from_an_open_folder_goes_from_that_folder(share: Share) -> None:
    """While its name is exchanged with another folder's, again and again."""
    for name in ("mine", "planted"):
        (share.tree / name).mkdir()
    mine = os.open(share.tree / "mine", os.O_RDONLY)
    code = """
d = os.open(ROOT + "/mine", os.O_RDONLY)
print("ready", flush=True)
for n in range(3000): os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY, dir_fd=d))
"""
    client = share.start([sys.executable, "-c", f"import os\nROOT={str(share.root)!r}\n{code}"])
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    libc = ctypes.CDLL(None)
    mine_path, other = bytes(share.tree / "mine"), bytes(share.tree / "planted")
    while client.poll() is None:
        assert libc.renameat2(-100, mine_path, -100, other, 2) == 0
    _, errors = client.communicate()
    assert not errors
    assert len(os.listdir(mine)) == 3000
    os.close(mine)


def test_a_page_that_is_gone_is_never_read_as_zeros(serve: Callable[..., Share]) -> None:
    """Somebody cuts the file on the backing store itself while four threads read there: each gets data, or
    the file's end, as from a file that the server does not have in its memory."""
    share = serve("--parallel", "4")
    code = """
import threading
SIZE, AT = 4 << 20, 3 << 20
open(ROOT + "/f", "wb").write(b"y" * SIZE)
f = os.open(ROOT + "/f", os.O_RDONLY)
wrong, over = [], threading.Event()
def read():
    while not over.is_set():
        try: found = os.pread(f, 128 << 10, AT)
        except OSError as error: found = repr(error).encode()
        if found.strip(b"y"): wrong.append(found[:80])
threads = [threading.Thread(target=read) for _ in range(4)]
for one in threads: one.start()
print("reading", flush=True); sys.stdin.readline()
over.set()
for one in threads: one.join()
print(wrong[:3], flush=True)
"""
    for _ in range(8):
        reader = share.start(
            [sys.executable, "-c", f"import os, sys\nROOT = {str(share.root)!r}\n{code}"],
            stdin=subprocess.PIPE,
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        until = time.monotonic() + 20
        while not mapped(share, "f") and time.monotonic() < until:
            time.sleep(0.01)
        os.truncate(share.tree / "f", 1 << 20)
        said, errors = reader.communicate("\n")
        assert said == "[]\n", said + errors
        os.unlink(share.tree / "f")
    assert share.server.process.poll() is None


def test_a_write_takes_away_what_a_file_lets_programs_do(open_to_all: Callable[..., Share]) -> None:
    """Capabilities, also of a file that was read before, and so is known to lie whole on the store."""
    share = open_to_all()
    path = share.tree / "program"
    path.write_bytes(bytes(SIZE))
    os.chmod(path, 0o666)
    os.setxattr(path, "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    code = f"""
f = os.open(ROOT + "/program", os.O_RDWR)
for _ in range(3): os.pread(f, {SIZE}, 0)
os.pwrite(f, b"y" * {SIZE}, 0)
"""
    act(share, BOB, code)
    assert os.listxattr(path) == []
