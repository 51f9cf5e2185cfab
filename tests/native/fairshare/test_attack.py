"""The campaign of a second user: it gets nothing, and it would see it if it did."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.attacks.fairshare.campaign import ATTACKS

from tiercel.layers.fairshare.programs import Programs

from .users import ROOT_OF_TESTS

MINUTES = 0.1


def attacked(minutes: float, seed: int, *options: str) -> tuple[int, dict[str, Any]]:
    """In a process of its own, since it changes what it sees of the system's files."""
    argv = [sys.executable, "-m", "tests.attacks.fairshare", "--minutes", str(minutes), "--seed", str(seed)]
    argv += ["--", *options]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=120 + 120 * minutes, cwd=ROOT_OF_TESTS
    )
    return done.returncode, json.loads(done.stdout)


def test_a_second_user_gets_nothing(programs: Programs, as_root: None) -> None:
    code, found = attacked(MINUTES, 7)
    assert (found["got"], found["victim"]["not_served"], code) == ([], 0, 0), found
    crowd = set() if any("subordinate" in what for what in found["left_out"]) else {"crowd"}
    assert found["tried"].keys() == {attack.__name__ for attack in ATTACKS} | crowd
    assert found["victim"]["served"] > 0
    assert found["looks"] > 0
    assert found["server_said"] == []


def test_what_a_server_lets_happen_is_found(programs: Programs, as_root: None) -> None:
    """Where its administrator lets users make jobs, sixteen of them take a share each."""
    code, found = attacked(MINUTES, 7, "--jobs", "users")
    assert code == 1
    assert any("jobs, the largest of size 1" in what for what in found["got"])


@pytest.mark.nightly
def test_a_second_user_gets_nothing_in_five_minutes(programs: Programs, as_root: None) -> None:
    code, found = attacked(5, 11)
    assert (found["got"], found["victim"]["not_served"], code) == ([], 0, 0), found
