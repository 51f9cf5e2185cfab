"""The campaign of a second user: it gets nothing, and it would see it if it did."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tiercel.layers.fairshare.programs import Programs
from tiercel.sharing.attack.attacks import ATTACKS
from tiercel.sharing.attack.campaign import campaign

MINUTES = 0.1


def test_a_second_user_gets_nothing(programs: Programs, as_root: None) -> None:
    argv = [sys.executable, "-m", "tiercel.sharing.attack", "--minutes", str(MINUTES), "--seed", "7"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    found = json.loads(done.stdout)
    assert (found["got"], found["victim"]["not_served"], done.returncode) == ([], 0, 0), found
    assert found["tried"].keys() == {attack.__name__ for attack in ATTACKS}
    assert found["victim"]["served"] > 0
    assert found["looks"] > 0
    assert found["server_said"] == []


def test_what_a_server_lets_happen_is_found(programs: Programs, as_root: None) -> None:
    """Where its administrator lets users make jobs, sixteen of them take a share each."""
    found = campaign(MINUTES, 7, ["--jobs", "users"])
    assert any("jobs, the largest of size 1" in what for what in found["got"])


@pytest.mark.nightly
def test_a_second_user_gets_nothing_in_five_minutes(programs: Programs, as_root: None) -> None:
    found = campaign(5, 11)
    assert (found["got"], found["victim"]["not_served"]) == ([], 0), found
