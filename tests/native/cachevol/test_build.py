"""native/cachevol builds without root and says in one line what it had to leave out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.caching.conftest import needs_connector

from tiercel.layers.cachevol import connector, log_program


def make(checkout: Path, build: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-s", "-C", str(checkout / "native" / "cachevol"), f"BUILD={build}", *words],
        capture_output=True, text=True, timeout=300, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(build.parent)},
    )  # fmt: skip


def test_without_headers_the_rest_is_built(checkout: Path, tmp_path: Path) -> None:
    done = make(checkout, tmp_path / "build", "CARGO=no-cargo")
    if (tmp_path / "build" / "libcachevol.so").exists():
        pytest.skip("this machine has HDF5 headers of its own")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "the connector is left out" in done.stdout
    assert (tmp_path / "build" / "cachevol-log").exists()
    installed = make(
        checkout,
        tmp_path / "build",
        "CARGO=no-cargo",
        f"BINDIR={tmp_path}/bin",
        f"LIBDIR={tmp_path}/lib",
        "install",
    )
    assert installed.returncode == 0, installed.stderr
    assert (tmp_path / "bin" / "cachevol-log").exists()
    assert not (tmp_path / "lib" / "cachevol" / "libcachevol.so").exists()


def test_headers_that_are_too_old_are_refused(checkout: Path, tmp_path: Path) -> None:
    done = make(checkout, tmp_path / "build", "CARGO=no-cargo", f"HDF5_INCLUDE={tmp_path}")
    assert f"HDF5_INCLUDE={tmp_path} does not hold the headers of HDF5 1.14 or newer" in done.stderr


@needs_connector
def test_the_connector_is_linked_to_no_hdf5() -> None:
    library = connector()
    assert library is not None
    answer = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True)
    assert "hdf5" not in answer.stdout


@needs_connector
def test_the_log_program_tells_its_usage() -> None:
    tool = log_program()
    assert tool is not None
    for words in ([], ["replay"], ["burn", "/tmp"], ["inspect", "/tmp", "--no-such"]):
        answer = subprocess.run([str(tool), *words], capture_output=True, text=True, check=False)
        assert answer.returncode == 2
        assert answer.stderr.startswith("usage: ")
