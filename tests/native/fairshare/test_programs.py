"""Programs that know nothing of fairshare, on what it serves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tiercel.programs import program

from .conftest import PREFIX, Share


def test_shell_redirections_and_core_utilities(share: Share) -> None:
    said = share.bash(r"""
cd $ROOT; mkdir a; for i in 1 2 3; do echo line $i; done > a/f
(echo begin; cat a/f; echo end) >> a/g
exec 5> five; echo one >&5; /bin/echo two >&5; exec 5>&-
sort -r < a/f | tee sorted | head -1
wc -l < a/g; cat five; pwd; sed -i s/line/LINE/ a/f; tail -1 a/f
cp -r a b; diff -r a b && mv b/f c; ls; find . -type f | wc -l; rm -r a b; ls -a | tr '\n' ' '
""")
    assert said.splitlines() == [
        "line 3", "5", "one", "two", PREFIX, "LINE 3", "a", "b", "c", "five", "sorted", "6",
        ". .. c five sorted ",
    ]  # fmt: skip


def test_tar_and_back(share: Share, tmp_path: Path) -> None:
    source = Path(__file__).parent
    share.bash(f"tar cf $ROOT/t.tar -C {source} . && mkdir $ROOT/x && tar xf $ROOT/t.tar -C $ROOT/x")
    share.bash(f"diff -r {source} $ROOT/x")


def test_sqlite(share: Share) -> None:
    said = share.python("""
import sqlite3
c = sqlite3.connect(ROOT + "/db")
c.execute("create table t(a)")
for _ in range(3):
    with c: c.executemany("insert into t values(?)", [(i,) for i in range(1000)])
d = sqlite3.connect(ROOT + "/db", timeout=0.2)
c.execute("begin exclusive")
try: d.execute("insert into t values (1)")
except sqlite3.OperationalError as error: print(error)
c.rollback()
print(d.execute("select sum(a) from t").fetchone()[0], d.execute("pragma integrity_check").fetchone()[0])
""")
    assert said.splitlines() == ["database is locked", "1498500 ok"]  # 3 * 999 * 1000 / 2


def test_h5py(share: Share) -> None:
    pytest.importorskip("h5py")
    said = share.python("""
import h5py, numpy as np
with h5py.File(ROOT + "/f.h5", "w") as f:
    f["x"] = np.arange(1_000_000)
    f.create_dataset("y", data=np.ones((100, 1000)), chunks=(10, 100), compression="gzip")
with h5py.File(ROOT + "/f.h5", "r") as f: print(f["x"][:].sum(), f["y"][50:60].sum())
""")
    assert said.split() == ["499999500000", "10000.0"]


def test_iokernel(share: Share) -> None:
    iokernel = program("iokernel")
    if iokernel is None:
        pytest.skip("iokernel is not built: run `make setup`")
    done = share.run(
        str(iokernel), "-n", "2", "-a", "POSIX", "-t", "256k", "-b", "2m", "-F", "-o", f"{PREFIX}/data",
        "-e", "-R", "-W", "-G", "5", "--phases", "w,r",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    done = share.run(str(iokernel), "md", "--processes", "2", "-n", "50", "-d", f"{PREFIX}/md")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(share.tree.rglob("*data*"))  # it removed its files there


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_fio_verifies(share: Share) -> None:
    done = share.run(
        "fio", "--name=x", f"--directory={PREFIX}", "--rw=randwrite", "--bs=16k",
        "--size=4m", "--ioengine=psync",
        "--verify=crc32c", "--do_verify=1", "--numjobs=2", "--thread",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_asynchronous_io_is_refused_and_not_lost(share: Share) -> None:
    done = share.run(
        "fio", "--name=x", f"--directory={PREFIX}", "--rw=write", "--size=1m", "--ioengine=libaio"
    )
    assert done.returncode != 0


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git(share: Share) -> None:
    share.bash("""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q $ROOT/r; cd $ROOT/r; seq 1000 > f; git add f; git commit -qm one
seq 1001 > f; git commit -qam two
git checkout -q HEAD~1; wc -l < f; git fsck
""")


def test_stdio_of_python_children(share: Share) -> None:
    said = share.python("""
import subprocess
with open(ROOT + "/out", "w") as out:
    subprocess.run(["echo", "from a child"], stdout=out, check=True)
    out.write("from the parent\\n")
print(open(ROOT + "/out").read(), end="")
tail = subprocess.run("cat < %s/out | tail -1" % ROOT, shell=True, capture_output=True, text=True)
print(tail.stdout, end="")
""")
    assert said.splitlines() == ["from a child", "from the parent", "from the parent"]


def test_a_mapping_that_would_lose_writes_is_refused(share: Share) -> None:
    said = share.python("""
import mmap, errno
open(ROOT + "/f", "wb").write(b"x" * 5000)
try: mmap.mmap(os.open(ROOT + "/f", os.O_RDWR), 0)
except OSError as error: print(errno.errorcode[error.errno])
""")
    assert said.strip() == "ENODEV"


def test_a_program_without_the_library_sees_an_error_and_no_wrong_data(share: Share) -> None:
    """A descriptor that a program without the library inherits fails: neither data nor silence."""
    code = """
import subprocess
open(ROOT + "/f", "w").write("secret")
env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
with open(ROOT + "/f") as f:
    argv = [sys.executable, "-c", "import os; os.read(0, 10)"]
    done = subprocess.run(argv, stdin=f, env=env, capture_output=True)
print(done.returncode != 0, b"Error" in done.stderr)
"""
    assert share.python(code).split() == ["True", "True"]


def test_many_short_processes(share: Share) -> None:
    share.bash("for i in $(seq 40); do echo $i > $ROOT/f$i; done; test $(cat $ROOT/f* | wc -l) = 40")
    assert len(list(share.tree.iterdir())) == 40
