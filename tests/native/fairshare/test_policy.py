"""The tests of the policy crate: shares by hand, every scheduler's promises on random jobs and calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tiercel.programs import program

SOURCE = Path(__file__).resolve().parents[3] / "native" / "fairshare"


def run_crate_tests(crate: str) -> None:
    """Run `cargo test` of one crate; its whole output is the message where a test fails."""
    cargo = program("cargo")
    if cargo is None:
        pytest.skip("cargo is not installed: install Rust (https://rustup.rs) to build and test fairshare")
    done = subprocess.run(
        [str(cargo), "test", "--quiet", "--locked", "--lib", "--bins", "--tests", "--package", crate],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok" in done.stdout  # tests were found


def test_policy_crate() -> None:
    run_crate_tests("fairshare-policy")
