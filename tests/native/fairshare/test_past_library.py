"""Calls that libc carries out by itself, past the wrappers of open and read: through, or an errno at once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tiercel.launchers.mpicc import compiler

from .conftest import PREFIX, Share, let_through

SOURCE = Path(__file__).with_name("past_library.c")
#: On an ordinary folder these do the same; the last one as root.
THROUGH = (
    "globs", "walks", "aio", "aio_lists", "prints", "open_files_by_number", "standard_input",
    "names_of_all_kinds", "from_folders_above", "calls_by_number", "other_users",
)  # fmt: skip
#: There they would succeed; through the library they fail with an errno that docs/sharing.md names.
REFUSED = (
    "one_thread_is_another_user",
    "forks_that_nobody_hears",
    "sockets",
    "refusals",
    "unknown_calls_in_a_served_folder",
)
AS_ROOT = ("other_users", "one_thread_is_another_user")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no C compiler")
    built = tmp_path_factory.mktemp("past") / "past_library"
    argv = [
        gcc,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(built),
        str(SOURCE),
        "-lrt",
        "-pthread",
    ]
    subprocess.run(argv, check=True)
    return built


def _needs_root(name: str, request: pytest.FixtureRequest) -> None:
    if name in AS_ROOT:
        request.getfixturevalue("as_root")


@pytest.mark.parametrize("name", THROUGH)
def test_on_an_ordinary_folder(
    program: Path, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    _needs_root(name, request)
    let_through(tmp_path)
    done = subprocess.run([str(program), name, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", THROUGH + REFUSED)
def test_through_the_library(
    program: Path, open_to_all_or_own: Share, name: str, request: pytest.FixtureRequest
) -> None:
    share = open_to_all_or_own
    _needs_root(name, request)
    before = share.server.data / "before"
    before.mkdir()
    (before / "decoy").write_text("of the folder that was the working directory before")
    (share.tree / "own").mkdir()
    done = share.run(str(program), name, f"{PREFIX}/own", cwd=before)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in before.iterdir()) == ["decoy"]
    assert (before / "decoy").read_text()


def test_mpi_writes_in_the_background(share: Share, tmp_path: Path) -> None:
    """ROMIO waits for aio's answer, which must come: this once turned for ever."""
    mpicc = compiler()
    if mpicc is None:
        pytest.skip("no MPI compiler")
    source, built = tmp_path / "iwrite.c", tmp_path / "iwrite"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int main(int n, char **v) { MPI_File f; MPI_Request r; MPI_Status s; MPI_Info none = MPI_INFO_NULL;"
        ' char back[5] = {0}; MPI_Init(&n, &v);'
        ' if (MPI_File_open(MPI_COMM_SELF, v[1], MPI_MODE_CREATE | MPI_MODE_RDWR, none, &f)) return 3;'
        ' if (MPI_File_iwrite_at(f, 3, "four", 4, MPI_CHAR, &r) || MPI_Wait(&r, &s)) return 4;'
        ' if (MPI_File_iread_at(f, 3, back, 4, MPI_CHAR, &r) || MPI_Wait(&r, &s)) return 5;'
        ' puts(back); MPI_File_close(&f); return MPI_Finalize(); }'
    )  # fmt: skip
    subprocess.run([str(mpicc), "-o", str(built), str(source)], check=True)
    done = share.run(str(built), f"{PREFIX}/f", timeout=60)
    assert (done.returncode, done.stdout) == (0, "four\n"), done.stderr
    assert (share.tree / "f").read_bytes() == b"\0\0\0four"
