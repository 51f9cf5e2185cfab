"""`make setup` in odd places: blanks and quotes in the path, what lacks, what may only be read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.programs import program

from ..conftest import CHECKOUT

HERE = Path(sys.executable).parent
#: In a mount namespace of its own: nothing of it is seen outside.
_READ_ONLY = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$0" "$@"'


@pytest.fixture
def checkout_with_blanks(tmp_path: Path) -> Path:
    """A checkout of links: its virtual environment has this one's MPI, and programs of its own."""
    root = tmp_path / "it's my [own] & checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(
        CHECKOUT / "native", root / "native", ignore=shutil.ignore_patterns("build", "build-*", "target")
    )
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


@pytest.mark.parametrize("name", ['a"b', "a`touch ran`b", "a$b", "a\\b", "a:b"])
def test_a_path_that_nothing_can_be_made_in_is_one_sentence(name: str, tmp_path: Path) -> None:
    """Shells, PATH or setuptools take such a path apart, some by running what stands in it."""
    root = tmp_path / name
    root.mkdir()
    for path in (CHECKOUT / "Makefile", CHECKOUT / "pyproject.toml"):
        shutil.copy(path, root)
    for folder in ("native", "requirements"):
        (root / folder).symlink_to(CHECKOUT / folder)
    answer = subprocess.run(
        ["make", "-s", "packages"], cwd=root, capture_output=True, text=True, check=False, timeout=60
    )
    said, *_ = answer.stderr.splitlines()
    assert said.startswith("tiercel: no environment can be made in a folder whose path has one of")
    assert answer.returncode == 2
    assert not (root / ".venv").exists() and not list(root.rglob("ran"))


def test_a_python_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    answer = subprocess.run(
        ["make", "PYTHON=no-such-python", "-Bs", f"VENV={tmp_path}/venv", "packages"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    said, *_ = answer.stderr.splitlines()
    assert said.startswith("tiercel: no no-such-python: name a Python of 3.11 or newer")


@pytest.mark.parametrize("words", [["packages"], [".venv/.native"], ["layers"]])
def test_a_checkout_that_may_only_be_read_is_one_sentence(words: list[str]) -> None:
    """An older one of somebody else's, where `make` would have something to do."""
    before = ["unshare", "--mount", "sh", "-c", _READ_ONLY]
    if subprocess.run([*before, "true"], cwd=CHECKOUT, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here (needs root)")
    old = ["-o", ".venv/.packages"] if words != ["packages"] else []
    old += ["-o", "setup"] if words == ["layers"] else []
    answer = subprocess.run(
        [*before, "make", "-Bs", *old, *words],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert answer.returncode == 2
    said, *_ = answer.stderr.splitlines()
    assert said.startswith("tiercel: this checkout may only be read: make a clone of your own")


@pytest.mark.parametrize("what", ["plan", "evaluate"])
def test_a_python_in_somebody_elses_home_is_one_sentence(what: str, tmp_path: Path) -> None:
    """Set up by a user whose Python nobody else may run: a shell said so, in words of its own."""
    (tmp_path / "python").touch()  # not to be executed
    answer = subprocess.run(
        ["make", "-s", "-o", "setup", what, f"BIN={tmp_path}"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert answer.returncode == 2
    said, *_ = answer.stderr.splitlines()
    assert said.startswith("tiercel: the Python of .venv does not run for you")
