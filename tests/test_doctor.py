"""`tiercel doctor`: what is here is seen, what is not is named with the way to get it."""

from __future__ import annotations

import importlib.util
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
    assert found["Snakemake"].found and found["Snakemake"].needed
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
            f"#!/bin/sh\n[ {name} = go ] && echo 'go version go1.23.4 linux/amd64' && echo more || exit 3\n"
        )
        (tmp_path / name).chmod(0o755)
    program.cache_clear()
    try:
        assert by_name()["Go"].found == "go version go1.23.4 linux/amd64"
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
    assert done.exit_code == 0 and "the missing ones are optional" in done.stdout
    monkeypatch.setattr(
        doctor, "parts", lambda: [Part("Measuring", "iokernel", "", "reads", "make setup", needed=True)]
    )
    done = runner.invoke(app, ["doctor"])
    assert done.exit_code == 1 and "required and missing: iokernel" in done.stdout
    assert "install: make setup" in done.stdout
    done = runner.invoke(app, ["doctor", "--json"])
    said = json.loads(done.stdout)
    assert done.exit_code == 1 and said["parts"][0]["found"] is None
    assert said["parts"][0]["get"] == "make setup" and "Linux" in said["machine"]


def programs_in(folder: Path, monkeypatch: pytest.MonkeyPatch, **said: str) -> dict[str, Part]:
    """Return the parts where PATH has these programs alone, each with what it says."""
    for name, words in said.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{words}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    program.cache_clear()
    try:
        return by_name()
    finally:
        program.cache_clear()


def test_a_tool_that_is_too_old_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12 has cargo 1.63, and fairshare asks for 1.82; its Go 1.19 fetches no newer one."""
    found = programs_in(
        tmp_path, monkeypatch, cargo="cargo 1.63.0 (abc 2022)", go="go version go1.19.8 linux/amd64"
    )
    assert found["Rust (cargo)"].found == "" and "1.82 or newer" in found["Rust (cargo)"].get
    assert found["Go"].found == "" and "go1.19.8 linux/amd64 is too old" in found["Go"].get
    declared = (Path(doctor.__file__).parents[2] / "native" / "fairshare" / "Cargo.toml").read_text()
    assert f'rust-version = "{".".join(map(str, doctor._RUST))}"' in declared


def test_an_installation_that_only_reads_names_what_measuring_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install tiercel` without the extra: neither Snakemake nor h5py."""
    find = importlib.util.find_spec
    lacking = ("snakemake", "h5py")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in lacking else find(name))
    found = by_name()
    assert found["Snakemake"].found == "" and "tiercel[evaluate]" in found["Snakemake"].get
    assert found["packages of [evaluate]"].found == ""
    assert "h5py, snakemake" in found["packages of [evaluate]"].get


def test_qsub_of_another_scheduler_is_no_cobalt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = {"qsub": "", "qstat": "", "qdel": ""}
    assert programs_in(tmp_path, monkeypatch, **three)["cobalt"].found == ""
    assert programs_in(tmp_path, monkeypatch, nodelist="")["cobalt"].found == str(tmp_path / "qsub")


def test_the_next_command_is_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler `make setup` fails: that comes first; outside a clone nothing can be made."""
    monkeypatch.setenv("CC", "nocc")
    found = programs_in(tmp_path, monkeypatch)
    assert found["MPI"].get == "a C compiler first (see Building), then make setup"
    assert found["fairshare"].get == "Rust first (see Building), then make layers"
    assert found["cachevol"].get == "a C compiler first (see Building), then make layers"
    assert found["Chromium"].found == "" and found["Chromium"].get
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "lib" / "tiercel" / "doctor.py"))
    assert programs_in(tmp_path, monkeypatch)["MPI"].get == "in a clone of tiercel: make setup"
