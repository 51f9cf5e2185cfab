"""A checkout whose path has blanks in it: the native parts are built and installed there, with MPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.programs import program

from ..conftest import CHECKOUT

HERE = Path(sys.executable).parent


@pytest.fixture
def checkout_with_blanks(tmp_path: Path) -> Path:
    """A checkout of links: its virtual environment has this one's MPI, and programs of its own."""
    root = tmp_path / "my own checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(CHECKOUT / "native", root / "native", ignore=shutil.ignore_patterns("build", "target"))
    shutil.copytree(CHECKOUT / "tools", root / "tools")
    for name in ("include", "lib"):
        (root / ".venv" / name).symlink_to(HERE.parent / name)
    return root


@pytest.mark.parametrize("part", ["iokernel", "tracescan", "dlkernel", "replay"])
def test_parts_are_built_and_installed(checkout_with_blanks: Path, part: str) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    root = checkout_with_blanks
    (root / "lib").mkdir()
    words = [f"BINDIR={root}/.venv/bin", f"LIBDIR={root}/lib", f"MPICC={root}/tools/mpicc"]
    if program("mpicc") is None:
        words[-1] = "MPICC="
    done = subprocess.run(
        ["make", "-s", "-C", root / "native" / part, *words, "install"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = {p.name for p in (root / ".venv" / "bin").iterdir()} | {p.name for p in (root / "lib").iterdir()}
    expected = {
        "iokernel": {"iokernel"}, "tracescan": {"libtracescan.so"}, "dlkernel": {"libdlkernel.so"},
        "replay": {"tiercel-replay"},
    }  # fmt: skip
    assert expected[part] <= made
    mpiexec = HERE / "mpiexec"
    if part == "iokernel" and (HERE / "mpicc").exists():
        answer = subprocess.run(
            [mpiexec, "-n", "2", root / ".venv" / "bin" / "iokernel-mpi", "--version"],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert len(answer.stdout.splitlines()) == 2


def test_a_compiler_that_is_not_there_is_one_sentence() -> None:
    answer = subprocess.run(
        ["make", "CC=no-such-compiler", "-Bs", "-o", ".venv/.packages", ".venv/.native"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    said, *_ = answer.stderr.splitlines()
    assert said.startswith(
        "tiercel: no C compiler (no-such-compiler), which the native parts need: install one"
    )
