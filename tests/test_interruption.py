"""A command that is asked to end does, also in the moments in which Python drops what is raised."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: A destructor and a weak reference's callback run while the signal comes; then the command goes on for long.
CODE = """
import os, signal, sys, time, weakref
from tiercel.cli.main import run
from tiercel.interruption import unwind_when_interrupted

def asked(*_):
    os.kill(os.getpid(), signal.{name})
    sum(range(10))

class InDestructor:
    def __del__(self):
        asked()

class Plain:
    pass

def command(standalone_mode):
    print("begun")
    {moment}
    time.sleep(60)

unwind_when_interrupted()
sys.exit(run(command))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize(
    "moment", ["InDestructor()", "one = Plain(); other = weakref.ref(one, asked); del one", "asked()"]
)
def test_an_interrupt_is_not_lost(name: str, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(name=name, moment=moment)], capture_output=True, text=True,
        timeout=50, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "begun\n"), done.stderr
    assert done.stderr == "tiercel: interrupted: run the same command again\n"


def test_what_else_is_dropped_is_told() -> None:
    code = CODE.format(name="SIGUSR1", moment="").replace("asked()\n\nclass Plain", "1 / 0\n\nclass Plain")
    code = code.replace("time.sleep(60)", "InDestructor()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "ZeroDivisionError" in done.stderr
