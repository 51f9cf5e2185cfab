"""One file system, however it is reached: the same checks and programs on each way in, and on several."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated
from tiercel.layers.fairshare.server import Server, running_mount, running_server

from . import conformance, posix_checks
from .conftest import let_through, needs_mount

#: The server's own mount; one that reaches it by its socket; one by TCP. Each also with the preload library.
MOUNTS = ("own", "socket", "tcp")
WAYS = ("ordinary", *MOUNTS, *(f"{mount}+library" for mount in MOUNTS))
#: Ways of programs that use the same files at the same time.
TOGETHER = (
    ("ordinary",), ("own",), ("own+library",), ("own", "own+library"), ("own+library", "tcp"),
    ("tcp", "socket"),
)  # fmt: skip
#: What root does as other users: a mount that is one user's shows its files to nobody else.
AS_OTHERS = (
    "sticky_folders", "owners_alone_change_modes_times_and_groups", "who_writes_takes_set_user_id_away",
    "fifos_have_rights",
)  # fmt: skip
SEVERAL = tuple(
    name for name in conformance.CHECKS if name.startswith(("what_", "appends_of", "whole_files", "parts_of"))
)
ALONE = tuple(name for name in conformance.CHECKS if name not in SEVERAL)


@dataclass(frozen=True)
class Way:
    """A folder, and the variables with which a program is to use it."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
        options = {"capture_output": True, "text": True, "timeout": 300, "cwd": self.folder, **more}
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            [str(word) for word in words], env={**os.environ, **self.environment}, check=False, **options
        )

    def bash(self, script: str) -> str:
        done = self.run("bash", "-euo", "pipefail", "-c", script)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def server(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    needs_mount()
    place = tmp_path_factory.mktemp("served")
    (place / "own").mkdir()
    options = ["--listen", "127.0.0.1:0"]
    with running_server(programs, place / "data", options, place / "log", mount=place / "own") as server:
        let_through(place)
        yield server


@pytest.fixture(scope="module")
def mounts(programs: Programs, server: Server) -> Iterator[dict[str, Path]]:
    assert server.mounted is not None
    with ExitStack() as stack:
        with Connection(server.socket) as connection:
            ticket = connection.ticket(Job("conformance"))
        found = {"own": server.mounted}
        for name, address in (("socket", server.socket), ("tcp", f"tcp:127.0.0.1:{server.port}")):
            folder = server.data.parent / name
            folder.mkdir()
            stack.enter_context(running_mount(programs, address, folder, ticket))
            found[name] = folder
        yield found


@pytest.fixture
def ways(
    programs: Programs, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[Sequence[str]], list[Way]]:
    """The same new folder, as ways of these names show it."""
    let_through(tmp_path)

    def of(names: Sequence[str]) -> list[Way]:
        if names[0] == "ordinary":
            (tmp_path / "f").mkdir(exist_ok=True)
            return [Way(tmp_path / "f", {})]
        mounts: dict[str, Path] = request.getfixturevalue("mounts")
        name = tmp_path.name
        (mounts["own"] / name).mkdir()
        found = []
        for each in names:
            mount, _, library = each.partition("+")
            environment = accelerated(programs.library, mounts[mount]) if library else {}
            found.append(Way(mounts[mount] / name, environment))
        return found

    return of


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, ways: Callable[[Sequence[str]], list[Way]]) -> Way:
    return ways([request.param])[0]


def _check(module: object, name: str, ways: Sequence[Way]) -> None:
    script = Path(str(getattr(module, "__file__", "")))
    environment = {key: value for way in ways for key, value in way.environment.items()}
    runner = Way(
        ways[0].folder, {"CONFORMANCE_NAMES": os.environ.get("CONFORMANCE_NAMES", "2000"), **environment}
    )
    done = runner.run(sys.executable, script, name, *(way.folder for way in ways), cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALONE)
def test_file_system(way: Way, name: str) -> None:
    _check(conformance, name, [way])


@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_ways(ways: Callable[[Sequence[str]], list[Way]], names: Sequence[str], name: str) -> None:
    _check(conformance, name, ways(names))


@pytest.mark.parametrize("name", posix_checks.CHECKS)
def test_posix(way: Way, name: str) -> None:
    if os.geteuid() == 0 and name in AS_OTHERS and way.folder.parent.name in ("socket", "tcp"):
        pytest.skip("root may act as others in the server's own mount only")
    done = way.run(sys.executable, Path(posix_checks.__file__), name, way.folder, cwd="/")
    assert done.returncode == 0, done.stderr


def needs(program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


RANDOM = 3_000_001


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "random"
    file.write_bytes(os.urandom(RANDOM))
    return file


def test_cp_and_back(way: Way, data: Path) -> None:
    way.bash(f"cp {data} a; cmp {data} a; cp a b; cmp {data} b; cp b {data}.back; cmp {data} {data}.back")


@pytest.mark.parametrize("size", ["1000", "100k", "1M", "3M"])
def test_dd(way: Way, data: Path, size: str) -> None:
    way.bash(
        f"dd if={data} of=a bs={size} 2>&1; cmp {data} a; dd if=a bs={size} 2>/dev/null | cmp - {data}; "
        f"dd if={data} of=b bs={size} conv=notrunc oflag=append 2>&1; cmp {data} b; "
        f"dd if={data} of=c bs={size} seek=2 2>&1; dd if=c bs={size} skip=2 2>/dev/null | cmp - {data}; "
        f"cat {data} > d; cat {data} >> d; "
        f"head -c {RANDOM} d | cmp - {data}; tail -c {RANDOM} d | cmp - {data}"
    )


def test_tar_and_shell(way: Way, data: Path) -> None:
    way.bash(f"""
mkdir a; cp {data} a/large; for i in 1 2 3; do echo line $i; done > a/f
(echo begin; cat a/f; echo end) >> a/g; exec 5> five; echo one >&5; /bin/echo two >&5; exec 5>&-
tar cf t.tar a; mkdir x; tar xf t.tar -C x; diff -r a x/a; test "$(cat five | tr '\\n' ' ')" = "one two "
cp -r a b; diff -r a b; mv b/f c; rm -r a; test "$(ls | tr '\\n' ' ')" = "b c five t.tar x "
""")


def test_rsync(way: Way, data: Path) -> None:
    needs("rsync")
    way.bash(
        f"mkdir a; cp {data} a/f; rsync -a a/ b/; diff -r a b; "
        f"echo more >> a/f; rsync -a --inplace a/ b/; diff -r a b"
    )


def test_git(way: Way, data: Path) -> None:
    needs("git")
    said = way.bash(f"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/nowhere
git init -q r; cd r; seq 1000 > f; cp {data} large; git add .; git commit -qm one
seq 1001 > f; git commit -qam two
git checkout -q HEAD~1; wc -l < f; git gc -q; git fsck --full 2>&1; cmp {data} large
""")
    assert said.split()[0] == "1000"


INCREMENTS = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
c.execute("pragma cache_size=10"); c.execute(f"pragma journal_mode={sys.argv[2]}")
for _ in range(int(sys.argv[3])):
    c.execute("begin immediate")
    (n,) = c.execute("select n from t where k = 1").fetchone()
    c.execute("update t set n = ?, filler = randomblob(20000) where k = 1", (n + 1,))
    c.execute("commit")
"""


@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
def test_sqlite_loses_no_increment(
    ways: Callable[[Sequence[str]], list[Way]], names: Sequence[str], tmp_path: Path
) -> None:
    found, count = ways(names), 30
    script = tmp_path / "increments.py"
    script.write_text(INCREMENTS)
    make = "create table t(k primary key, n, filler); insert into t values (1, 0, '')"
    done = found[0].run(
        sys.executable, "-c", f"import sqlite3; sqlite3.connect('db').executescript({make!r})"
    )
    assert done.returncode == 0, done.stderr
    writers = [
        subprocess.Popen(
            [sys.executable, str(script), str(way.folder / "db"), "delete", str(count)],
            env={**os.environ, **way.environment}, stderr=subprocess.PIPE, text=True,
        )
        for way in found
        for _ in range(2 if len(found) > 1 else 3)
    ]  # fmt: skip
    for writer in writers:
        assert writer.communicate(timeout=240)[1] == ""
    code = (
        "import sqlite3; c = sqlite3.connect('db'); print(c.execute('select n from t').fetchone()[0], "
        "c.execute('pragma integrity_check').fetchone()[0])"
    )
    for way in found:
        assert way.run(sys.executable, "-c", code).stdout.split() == [str(len(writers) * count), "ok"]


@pytest.mark.parametrize("engine", ["psync", "pvsync", "libaio", "io_uring", "mmap", "sync"])
def test_fio_verifies(way: Way, engine: str) -> None:
    needs("fio")
    direct = ["--iodepth=8"] if engine in ("libaio", "io_uring") else []
    done = way.run(
        "fio", "--name=x", f"--directory={way.folder}", "--rw=randrw", "--bsrange=4k-300k", "--size=6m",
        f"--ioengine={engine}", "--verify=crc32c", "--do_verify=1", "--numjobs=2", "--thread", "--fsync=40",
        *direct,
    )  # fmt: skip
    if "not loadable" in done.stderr or "Function not implemented" in done.stderr + done.stdout:
        pytest.skip(f"fio has no engine {engine} here, which is not installed or switched off")
    assert done.returncode == 0, done.stdout + done.stderr


def test_hdf5(way: Way) -> None:
    pytest.importorskip("h5py")
    code = """
import h5py, numpy as np
with h5py.File("f.h5", "w") as f:
    f["x"] = np.arange(1_000_000)
    f.create_dataset("y", data=np.ones((100, 1000)), chunks=(10, 100), compression="gzip")
with h5py.File("f.h5", "r") as f: print(f["x"][:].sum(), f["y"][50:60].sum())
"""
    done = way.run(sys.executable, "-c", code)
    assert done.stdout.split() == ["499999500000", "10000.0"], done.stderr


def test_programs_start_from_it(way: Way) -> None:
    shutil.copy("/bin/true", way.folder / "program")
    assert way.run(way.folder / "program").returncode == 0
