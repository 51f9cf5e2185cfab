"""`tiercel doctor`: what is here is seen, what is not is named with the way to get it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiercel import doctor
from tiercel.cli.main import app
from tiercel.doctor import Part, parts
from tiercel.engines import engines
from tiercel.layers import layers
from tiercel.programs import program
from tiercel.schedulers import schedulers


def by_name() -> dict[str, Part]:
    return {part.name: part for part in parts()}


def test_every_engine_layer_and_scheduler_is_told_of() -> None:
    found = by_name()
    assert {*engines, *layers, *schedulers} <= found.keys()
    assert found["iokernel"].found and found["iokernel"].needed
    assert all(part.adds and part.get for part in found.values())
    installation = engines.get("iokernel")().find()
    assert installation and found["iokernel"].found == installation.version


def test_a_program_is_seen_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program.cache_clear()
    assert by_name()["Go"].found == "" and by_name()["strace"].found == ""
    for name in ("go", "fusermount3"):  # one that answers, one that fails
        (tmp_path / name).write_text(
            f"#!/bin/sh\n[ {name} = go ] && echo 'go version go1.0' && echo more || exit 3\n"
        )
        (tmp_path / name).chmod(0o755)
    program.cache_clear()
    try:
        assert by_name()["Go"].found == "go version go1.0"
        assert by_name()["C compiler (cc)"].found == ""
    finally:
        program.cache_clear()


def test_a_program_that_never_answers_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cargo").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(doctor, "_PATIENCE_S", 0.2)
    program.cache_clear()
    try:
        assert by_name()["Rust (cargo)"].found == str(tmp_path / "cargo")
    finally:
        program.cache_clear()


def test_what_is_needed_and_lacking_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["doctor"])
    assert done.exit_code == 0 and "what is not here is optional" in done.stdout
    monkeypatch.setattr(
        doctor, "parts", lambda: [Part("Measuring", "iokernel", "", "reads", "make setup", needed=True)]
    )
    done = runner.invoke(app, ["doctor"])
    assert done.exit_code == 1 and "needed and not here: iokernel" in done.stdout
    assert "to get it: make setup" in done.stdout
    said = json.loads(runner.invoke(app, ["doctor", "--json"]).stdout)
    assert said["parts"][0]["get"] == "make setup" and "Linux" in said["machine"]
