"""`tiercel cache run`: an unmodified program, and what is said when something is amiss."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tiercel.caching.launch import environment_for

from ..cli.test_bad_input import asked
from .conftest import Node, needs_connector

pytestmark = needs_connector

PROGRAM = "import h5py, numpy as np; f = h5py.File('f.h5', 'w'); f['x'] = np.arange(500_000); f.close()"


def cache(*words: str, folder: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
    return subprocess.run(
        [sys.executable, "-m", "tiercel", "cache", *words], cwd=folder, capture_output=True, text=True,
        timeout=120, check=False, env={**plain, **(env or {})},
    )  # fmt: skip


def test_an_unmodified_program_is_staged(node: Node) -> None:
    done = cache(
        "run", "--storage", str(node.local), "--stats", str(node.stats_file), "--size", "1GiB",
        "--", sys.executable, "-c", PROGRAM, folder=node.base,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert node.counts()["staged_bytes"] + node.counts()["direct_bytes"] >= 4_000_000
    with h5py.File(node.base / "f.h5") as file:
        assert np.array_equal(file["x"][...], np.arange(500_000))


def test_the_programs_exit_code_is_passed_on(node: Node) -> None:
    run = ("run", "--storage", str(node.local), "--", sys.executable, "-c")
    assert cache(*run, "raise SystemExit(7)", folder=node.base).returncode == 7
    assert cache(*run, "import os; os.kill(os.getpid(), 9)", folder=node.base).returncode == 137


def test_mistakes_are_one_line(node: Node) -> None:
    storage = ("--storage", str(node.local))
    for words, env, expected in [
        (("run", "--storage", "/nowhere", "--", "true"), {}, "/nowhere: the node-local folder is not there"),
        (("run", *storage, "--", "no-such-program"), {}, "no-such-program: no such program"),
        (("run", *storage, "--size", "much", "--", "true"), {}, "--size: 'much' is not a size"),
        (("run", *storage, "--", "true"), {"HDF5_VOL_CONNECTOR": "other"}, "is set already"),
        (
            ("run", *storage, "--stats", "/proc/none/counts", "--", "true"),
            {},
            "there is no folder /proc/none",
        ),
        (("drop", *storage), {}, "name one with --log or --file, or say --all"),
        (("drop", *storage, "--all", "--log", "a"), {}, "--all is every log"),
        (("drop", *storage, "--log", "a"), {}, "no log a is staged there"),
        (("replay", *storage, "--log", "a"), {}, "no log a is staged there"),
        (("bench", "--base", "/nowhere", *storage), {}, "--base /nowhere: not a folder"),
    ]:
        done = cache(*words, folder=node.base, env=env)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith("tiercel: ")
        assert expected in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_connector_that_does_not_load_is_found_before_hdf5_crashes(node: Node, tmp_path: Path) -> None:
    """HDF5 2.0 crashes on a missing connector when the program creates its first file."""
    broken = tmp_path / "plugins"
    broken.mkdir()
    (broken / "libcachevol.so").write_bytes(b"not a library")
    code = (
        "import sys, tiercel.layers.cachevol as c; from pathlib import Path;"
        f"c.connector = lambda: Path({str(broken / 'libcachevol.so')!r});"
        f"from tiercel.caching.launch import run; run(['true'], Path({str(node.local)!r}), {{}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "does not load" in done.stderr
    assert "UserError" in done.stderr


def test_bad_settings_leave_plain_hdf5(node: Node) -> None:
    done = node.run(PROGRAM, policy="MRU")
    assert done.returncode == 0
    assert "HDF5_CACHE_REPLACEMENT_POLICY=MRU is of no use: nothing is cached" in done.stderr
    with h5py.File(node.base / "f.h5") as file:
        assert np.array_equal(file["x"][...], np.arange(500_000))


def test_counts_need_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one the `--` of the program was taken for it."""
    monkeypatch.chdir(tmp_path)
    code, out, err = asked(["cache", "run", "--stats", "--", "true"])
    assert (code, out) == (2, "") and "--stats: needs a file" in err
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_for_comes_before_variables_and_these_before_the_default(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--size had no effect where HDF5_CACHE_STORAGE_SIZE was set, nor --write beside HDF5_CACHE_WR."""
    monkeypatch.setenv("HDF5_CACHE_STORAGE_SIZE", "1GiB")
    monkeypatch.setenv("HDF5_CACHE_WR", "no")
    monkeypatch.delenv("HDF5_VOL_CONNECTOR", raising=False)
    asked = environment_for(node.local, {"size": 2 << 30, "write": True})
    assert (asked["HDF5_CACHE_STORAGE_SIZE"], asked["HDF5_CACHE_WR"]) == (str(2 << 30), "yes")
    left = environment_for(node.local, {})
    assert (left["HDF5_CACHE_STORAGE_SIZE"], left["HDF5_CACHE_WR"], left["HDF5_CACHE_RD"]) == (
        "1GiB",
        "no",
        "yes",
    )


def test_a_connector_that_the_user_set_up_is_kept(node: Node) -> None:
    """As the message on another connector says; its file counts, but for what is asked."""
    settings = node.base / "SSD.cfg"
    settings.write_text("HDF5_CACHE_WR: no\nHDF5_CACHE_RD: no\n")
    env = {"HDF5_VOL_CONNECTOR": f"tiercel_cachevol config={settings}"}
    run = ("run", "--storage", str(node.local), "--stats", str(node.stats_file))
    assert cache(*run, "--", sys.executable, "-c", PROGRAM, folder=node.base, env=env).returncode == 0
    assert node.counts()["staged_writes"] + node.counts()["direct_bytes"] == 0
    node.stats_file.unlink()
    assert (
        cache(*run, "--write", "--", sys.executable, "-c", PROGRAM, folder=node.base, env=env).returncode == 0
    )
    assert node.counts()["staged_bytes"] + node.counts()["direct_bytes"] >= 4_000_000


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("print('no HDF5 at all')", False),
        (PROGRAM, True),
        (f"import os; {PROGRAM}; os._exit(0)", True),  # past the end of HDF5, which writes the counts
    ],
)
def test_a_program_that_never_loaded_the_connector_is_told(node: Node, code: str, loaded: bool) -> None:
    done = cache("run", "--storage", str(node.local), "--", sys.executable, "-c", code, folder=node.base)
    assert done.returncode == 0
    assert ("no process on this node loaded the connector" in done.stderr) is not loaded


def test_counts_that_cannot_be_written_are_no_sign_of_a_program_without_the_connector(node: Node) -> None:
    env = {"HDF5_CACHE_STATS": str(node.base / "nowhere" / "counts")}
    done = cache("run", "--storage", str(node.local), "--", "true", folder=node.base, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nowhere/counts" in done.stderr
