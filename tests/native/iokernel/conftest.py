"""The programs under test are built once per session, or taken from IOKERNEL_BUILD."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from tiercel.programs import program

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "native" / "iokernel"


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    given = os.environ.get("IOKERNEL_BUILD")
    if given:
        return pathlib.Path(given).resolve()
    copy = tmp_path_factory.mktemp("build of iokernel") / "iokernel"  # a path with spaces, on purpose
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("build", "build-*"))
    mpicc = f"MPICC={program('mpicc') or ''}"
    subprocess.run(["make", "-s", "-j2", "CFLAGS=-O1", mpicc, "all", "sanitize"], cwd=copy, check=True)
    return copy / "build"


@dataclasses.dataclass
class Run:
    status: int
    stdout: str
    stderr: str

    @property
    def document(self):
        return json.loads(self.stdout)

    @property
    def results(self):
        return self.document["tests"][0]["Results"]

    @property
    def parameters(self):
        return self.document["tests"][0]["Parameters"]


def run_program(command, **keywords):
    done = subprocess.run(
        [os.fspath(c) if not isinstance(c, bytes) else c for c in command],
        capture_output=True,
        timeout=120,
        check=False,
        **keywords,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode(errors="surrogateescape"))


class Engine:
    """Calls one of the programs in a directory of its own."""

    def __init__(self, command, directory):
        self.command, self.directory = command, directory

    def __call__(self, *arguments, **keywords):
        return run_program([*self.command, *self.words(arguments)], cwd=self.directory, **keywords)

    @staticmethod
    def words(arguments):
        return [_text(word) for argument in arguments for word in _words(argument)]

    def good(self, *arguments, **keywords):
        run = self(*arguments, **keywords)
        assert run.status == 0, run.stderr
        document = run.document
        assert document["status"] == "ok" and document["error"] is None
        return run

    def path(self, name):
        return self.directory / name


def _words(argument):
    """Texts are split at blanks, which keeps calls readable; bytes and numbers are one argument each."""
    return argument.split(" ") if isinstance(argument, str) else [argument]


def _text(word):
    return word if isinstance(word, bytes) else str(word)


@pytest.fixture
def iokernel(build, tmp_path):
    return Engine([build / "iokernel"], tmp_path)


@pytest.fixture
def engine_in(build):
    return lambda directory: Engine([build / "iokernel"], directory)


@pytest.fixture
def sanitized(build, tmp_path):
    engine = build / "iokernel-asan"
    if not engine.exists():
        pytest.skip("iokernel-asan is not built: make sanitize")
    return Engine([engine], tmp_path)


@pytest.fixture
def mpi(build, tmp_path):
    """A function of the number of ranks that gives an engine."""
    engine, launcher = build / "iokernel-mpi", program("mpiexec")
    if not engine.exists() or not launcher:
        pytest.skip("no mpicc or mpiexec, so iokernel-mpi is not built")
    extra = []
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" in version or "OpenRTE" in version or "prte" in version.lower():
        extra = ["--oversubscribe", "--allow-run-as-root"]
    return lambda ranks: Engine([launcher, *extra, "-n", str(ranks), engine], tmp_path)


def file_system_of(path):
    """The type of the file system that holds a path, from /proc/self/mountinfo."""
    device = pathlib.Path(path).stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return "unknown"


@pytest.fixture
def disk(tmp_path):
    kind = file_system_of(tmp_path)
    if kind not in ("ext4", "xfs"):
        pytest.skip(f"the test directory is on {kind}, which need not drop cached pages when asked")
    return tmp_path


@pytest.fixture
def memory():
    """A directory on tmpfs."""
    shm = pathlib.Path("/dev/shm")
    if not shm.is_dir() or file_system_of(shm) != "tmpfs" or not os.access(shm, os.W_OK):
        pytest.skip("no writable tmpfs at /dev/shm")
    with tempfile.TemporaryDirectory(dir=shm) as directory:
        yield pathlib.Path(directory)
