"""What the command line says, and with which exit code, when something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer

from tiercel.cli.main import DEFECT, INTERRUPTED, MISTAKE, run
from tiercel.errors import UserError


def tiercel(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tiercel", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["advise"], "Missing argument"),
        (["site", "show", "local", "--bad"], "No such option: --bad"),
        (["compare", "--fail-on", "maybe", "a", "b"], "--fail-on maybe: write slower"),
        (["trace", "summary", "/nonexistent/trace"], "/nonexistent/trace"),
        (["evaluate", "--study", "nope"], "no study named 'nope'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words: list[str], said: str) -> None:
    done = tiercel(*words)
    assert done.returncode == MISTAKE and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("tiercel: ") and said in done.stderr


def test_a_command_alone_shows_its_help() -> None:
    done = tiercel("site")
    assert done.returncode == MISTAKE and "Usage: " in done.stdout + done.stderr


def test_a_terminal_of_another_alphabet() -> None:
    """As of LC_ALL=en_US: what it cannot show is a question mark there."""
    program = "from tiercel.cli import main as m; m.run = lambda app: print('5 \u2013 6') or 0; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"5 ? 6\n"), done.stderr


@pytest.mark.parametrize(("closed", "said"), [(">&-", 1), (">&- 2>&-", 0)])
def test_closed_output_is_a_mistake(closed: str, said: int) -> None:
    words = f'"{sys.executable}" -m tiercel site list {closed}'
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == MISTAKE
    assert done.stderr.count("\n") == said and "Traceback" not in done.stderr, done.stderr


def test_what_cannot_be_printed_is_said() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "tiercel", "site", "list"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=120, check=False,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )  # fmt: skip
    assert done.returncode == MISTAKE and "No space left on device" in done.stderr


def raising(error: BaseException):  # type: ignore[no-untyped-def]
    def command(**_options: object) -> object:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("x.yaml: no such key"), MISTAKE, "tiercel: x.yaml: no such key\n"),
        (
            PermissionError(13, "Permission denied", "/r/only"),
            MISTAKE,
            "tiercel: /r/only: Permission denied\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "tiercel: interrupted"),
        (typer.Abort(), INTERRUPTED, "tiercel: interrupted"),
        (MemoryError(), MISTAKE, "tiercel: out of memory: "),
        (
            ImportError("libarrow.so: failed to map segment from shared object"),
            MISTAKE,
            "tiercel: out of memory: ",
        ),
    ],
)
def test_trouble_has_its_line(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(raising(error)) == code
    assert capsys.readouterr().err.startswith(said)


def test_a_defect_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """1 means that `compare` found something slower: a crash must not look like it."""
    assert run(raising(IndexError("list index out of range"))) == DEFECT
    said = capsys.readouterr().err
    assert "IndexError: list index out of range" in said and "please report it" in said


def test_a_library_that_does_not_fit_is_a_defect(capsys: pytest.CaptureFixture[str]) -> None:
    """Only want of memory is the machine's trouble."""
    assert run(raising(ImportError("libarrow.so: undefined symbol: f"))) == DEFECT
    assert "undefined symbol" in capsys.readouterr().err


def test_an_exit_code_of_a_command_stays() -> None:
    assert run(lambda **_options: 1) == 1
    assert run(lambda **_options: None) == 0
