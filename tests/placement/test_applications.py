"""Real programs on two folders: measured, traced, grouped, and compared with a model; and repeats of the
real engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tiercel.errors import UserError
from tiercel.launchers import resolve
from tiercel.placement.applications import applications, base
from tiercel.placement.applications.lammps import Lammps
from tiercel.placement.applications.measure import available, measure
from tiercel.placement.applications.own import OwnCommand
from tiercel.placement.applications.parallel import HaccIO, Stencil
from tiercel.placement.applications.truth import load_samples
from tiercel.programs import program
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, execute
from tiercel.runs.tracing import preload_library
from tiercel.site.model import Site, Storage
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.study.plan import Run
from tiercel.subjects import Subject, fill

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


SCRIPT = 'head -c 100000 "$0/in put" > "$0/out\n1"; cat "$0/in put" > /dev/null'
PREPARE = ["dd", "if=/dev/zero", "of={folder}/in put", "bs=300000", "count=1", "status=none"]


@needs_tools
def test_a_program_of_ones_own_is_an_application(tmp_path: Path, site: Site) -> None:
    """It writes 100,000 bytes and reads them (head: a little more) and then 300,000."""
    results = tmp_path / "results"
    own = OwnCommand(["sh", "-c", SCRIPT, "{folder}"], PREPARE, "mine")
    ran = list(measure(site, results, repetitions=1, own=own))
    assert [reason for *_, reason in ran] == ["", ""]
    assert list(measure(site, results, repetitions=1, own=own)) == []
    table, more = load_samples(results, ["one", "two"], tmp_path / "cache")
    assert more["notes"] == [] and set(table["application"]) == {"mine"}
    by_file = {str(name).partition("/")[2]: row for name, row in table.iterrows()}
    assert by_file["out\n1"]["bytes"] == 100_000
    assert 400_000 <= by_file["in put"]["bytes"] < 500_000  # head reads whole buffers
    again = OwnCommand(["sh", "-c", "exit 3", "{folder}"], PREPARE, "mine")
    failed = [reason for *_, reason in measure(site, results, repetitions=1, own=again)]
    assert failed == ["exit code 3: "] * 2  # another command: what was measured is not its own
    broken = OwnCommand(["true", "{folder}"], ["sh", "-c", "echo no input; exit 1"], "mine")
    failed = [reason for *_, reason in measure(site, results, repetitions=1, own=broken)]
    assert failed == ["its preparation: exit code 1: no input"] * 2


def test_names_of_ones_own_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "my prog.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert OwnCommand(["./my prog.sh", "{folder}"]).name == "my-prog-sh"
    for words, name, said in (
        (["tar", "{folder}"], "", "an application is called tar already"),
        (["true", "{folder}"], "a/b", "letters, digits"),
        (["true"], "", "no argument of the command contains {folder}"),
        (["no-such-program", "{folder}"], "x", "no such program on PATH"),
    ):
        with pytest.raises(UserError, match=said):
            OwnCommand(words, name=name)


def test_applications_are_found_and_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this folder, as the page says; and in packages whose subject names them."""
    found = applications.names()
    assert {"git", "hacc", "lammps", "sort", "sqlite", "stencil", "tar"} <= set(found)
    module = ModuleType("their_application")
    monkeypatch.setitem(sys.modules, "their_application", module)
    monkeypatch.setattr("tiercel.subjects.subjects", lambda: (Subject(applications=("their_application",)),))
    assert module in fill("applications", base.__name__)


def test_what_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiercel.placement.applications import lammps  # noqa: PLC0415

    monkeypatch.setattr(lammps, "program", lambda _name: None)
    found, notes = available(["lammps"])
    assert not found
    assert "lmp is not on PATH" in notes[0]


@pytest.mark.skipif(
    preload_library() is None or program("mpiexec") is None, reason="DFTracer or mpiexec is not installed"
)
def test_a_parallel_application_runs_on_several_processes_and_its_files_are_samples(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of 1,024 particles of 38 bytes, written and read once, behind a header of 2 + 2 numbers
    for each process of a file."""
    small = [v for v in HaccIO.variants if v.name in ("mpiio-shared-small", "posix-file-per-process-small")]
    monkeypatch.setattr(HaccIO, "variants", tuple(small))
    results = tmp_path / "results"
    ran = list(measure(site, results, repetitions=1, only=["hacc"]))
    assert [reason for *_, reason in ran] == [""] * 4 and {run.processes for _, _, run, _ in ran} == {2}
    table, more = load_samples(results, ["one", "two"], tmp_path / "cache")
    assert more["notes"] == []
    shared, own = (
        table[table["variant"] == "mpiio-shared-small"],
        table[table["variant"] != "mpiio-shared-small"],
    )
    particles = 2 * 1024 * 38
    # Checkpoint and restart; the header is written alone.
    assert (shared["files"].sum(), shared["bytes"].sum()) == (1, 2 * particles + 6 * 8)
    assert (own["files"].sum(), own["bytes"].sum()) == (2, 2 * particles + 2 * 4 * 8)
    files = more["files"]["hacc.mpiio-shared-small"]
    # How many of them did I/O at the same time depends on the machine: test_estimates counts that by hand.
    assert files["num_ranks"].tolist() == [2]


@pytest.mark.nightly
@pytest.mark.skipif(
    preload_library() is None or program("mpiexec") is None, reason="DFTracer or mpiexec is not installed"
)
@pytest.mark.parametrize("processes", [2, 3])
def test_every_parallel_program_reads_what_it_wrote(tmp_path: Path, site: Site, processes: int) -> None:
    """They compare it themselves, and fail where it differs."""
    several = site.model_copy(update={"processes_per_node": processes})
    ran = list(measure(several, tmp_path / "results", repetitions=1, only=["hacc", "stencil"]))
    assert {(run.processes, reason) for _, _, run, reason in ran} == {(processes, "")}
    table, more = load_samples(tmp_path / "results", ["one", "two"], tmp_path / "cache")
    assert more["notes"] == [] and set(table["variant"]) == {
        v.name for a in (HaccIO, Stencil) for v in a.variants
    }


def test_without_mpi_parallel_programs_are_left_out_and_so_are_parallel_variants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Lammps, "missing", lambda _self: None)
    monkeypatch.setattr("tiercel.placement.applications.measure.lacks_tracer", lambda _application: None)
    found, notes = available(["lammps", "hacc"], resolve("fork"))
    assert list(found) == ["lammps"]
    assert notes == [
        "lammps goes without its parallel variants: launcher fork has no MPI",
        "hacc left out: its processes need MPI, and launcher fork has none",
    ]


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
