"""The Makefile: versions, what is left out, where things go."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def copy(source, tmp_path):
    folder = tmp_path / "a folder's copy"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("build", "build-*"))
    return folder


def make(folder, *arguments):
    # `make test` is itself a make: without its variables this one is nobody's sub-make
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}
    return subprocess.run(
        ["make", "CFLAGS=-O0", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def version(folder):
    return subprocess.run(
        [folder / "build" / "iokernel", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_without_an_mpi_compiler_one_line_says_so(copy, tmp_path):
    done = make(copy, "MPICC=no-such-compiler", f"BINDIR={tmp_path / 'bin dir'}", "install")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "left out" in line] == [
        "iokernel: no-such-compiler not found, iokernel-mpi is left out"
    ]
    assert [p.name for p in (tmp_path / "bin dir").iterdir()] == ["iokernel"]


def test_a_changed_source_is_a_changed_engine(copy):
    assert make(copy, "build/iokernel").returncode == 0
    first = version(copy)
    assert make(copy, "build/iokernel").stdout == ""  # nothing to do
    with (copy / "src" / "order.c").open("a") as file:
        file.write("/* changed */\n")
    assert make(copy, "build/iokernel").returncode == 0
    second = version(copy)
    assert first != second and first.split("+")[0] == second.split("+")[0]
