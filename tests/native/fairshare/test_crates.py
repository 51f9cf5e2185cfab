"""The tests of the crates wire and server, and what the linters say of the parts in C."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tiercel.programs import program

from .test_policy import SOURCE, run_crate_tests


@pytest.mark.parametrize("crate", ["fairshare-wire", "fairshare-server"])
def test_crate(crate: str) -> None:
    run_crate_tests(crate)


@pytest.mark.nightly
def test_the_wire_against_very_many_hostile_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSHARE_FUZZ", "20000000")
    run_crate_tests("fairshare-wire")


@pytest.mark.nightly
def test_ring_and_mount_against_very_many_hostile_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSHARE_FUZZ", "3000000")
    run_crate_tests("fairshare-server")


@pytest.mark.parametrize("part", ["client", "load"])
def test_c_parts_are_without_warnings(part: str) -> None:
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed: it builds the parts of fairshare in C")
    if part == "client" and program("cargo") is None:
        pytest.skip("cargo is not installed: it writes the header that client and server share (wire.h)")
    done = subprocess.run(
        ["make", "-s", "-C", str(SOURCE / part), "lint"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
