"""Real programs on two folders: measured, traced, grouped, and compared with a model; and repeats of the
real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tiercel.placement.applications.measure import available, measure
from tiercel.placement.applications.truth import load_samples
from tiercel.programs import program
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, execute
from tiercel.site.model import Site, Storage
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.study.plan import Run

from ..conftest import needs_iokernel

needs_tools = pytest.mark.skipif(
    program("strace") is None or program("tar") is None,
    reason="strace or tar is not installed (Debian: strace, tar)",
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    storages = {}
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        mount = mount_of(folder, read_mounts())
        assert mount is not None
        storages[name] = Storage(
            type=mount.type, mount=str(mount.point), scratch=str(folder), medium=mount.medium
        )
    return Site(site="here", storages=storages)


@needs_tools
def test_applications_run_once_and_give_samples_on_every_system(tmp_path: Path, site: Site) -> None:
    results = tmp_path / "results"
    ran = list(measure(site, results, repetitions=2, only=["tar"]))
    assert [reason for *_, reason in ran] == [""] * 12  # 3 variants x 2 systems x 2 repetitions
    assert list(measure(site, results, repetitions=2, only=["tar"])) == []  # resumed: nothing is left to do
    assert not list((tmp_path / "one").rglob("*.txt"))  # and nothing stays on the storage
    table, more = load_samples(results, ["one", "two"], tmp_path / "cache")
    unpacked = table.loc[
        next(n for n in table.index if n.startswith("tar.unpack-small/") and n.endswith("file*.txt"))
    ]
    assert unpacked["files"] == 400
    assert unpacked["repetitions:one"] == unpacked["repetitions:two"] == 2
    assert more["notes"] == []


def test_what_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiercel.placement.applications import lammps  # noqa: PLC0415

    monkeypatch.setattr(lammps, "program", lambda _name: None)
    found, notes = available(["lammps"])
    assert not found
    assert "lmp is not on PATH" in notes[0]


@needs_iokernel
@pytest.mark.parametrize("access", ["WO", "WAR", "RO", "RAW"])
def test_repeats_are_one_measurement_of_all_of_them(
    tmp_path: Path, new_run: Callable[..., Run], equipment: Callable[..., Equipment], access: str
) -> None:
    """Three times 1 MiB from each of two processes is 6 MiB, and 96 transfers of 64 KiB."""
    operation = "write" if access.startswith("W") else "read"
    run = new_run(launcher="fork", operation=operation, access=access, repeats=3)
    outcome = execute(run, equipment(launcher="fork"))
    assert outcome.reason == ""
    measured = [m for m in outcome.measurements if m.role == "measured"]
    assert [(m.bytes_moved, m.operations, m.access) for m in measured] == [(6 * 2**20, 96, access)]
    assert measured[0].bandwidth == pytest.approx(6 * 2**20 / measured[0].total_time)
    assert RawStore(tmp_path / "results").finished(run.id)
