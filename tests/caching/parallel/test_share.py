"""Sharing of copies between nodes by one-sided MPI, without HDF5: only an MPI like MPICH is needed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import CHECKOUT
from tiercel.programs import program

SOURCES = CHECKOUT / "native" / "cachevol" / "src"
SIZE = 3_000_001  # bytes; divisible by nothing
BLOCK = 4096
STEP = 300_001  # bytes of one read in share.c


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of share.c, built with the connector's own sources."""
    found = CHECKOUT / "native" / "cachevol" / "build" / "headers.txt"
    headers = found.read_text().strip() if found.is_file() else ""
    mpicc = program("mpicc")
    if not headers or mpicc is None or program("mpiexec") is None:
        pytest.skip("no headers of HDF5 (make layers finds them) or no MPI (make setup installs one)")
    built = tmp_path_factory.mktemp("share") / "share"
    sources = [str(s) for s in sorted(SOURCES.glob("*.c")) if s.name != "tool.c"]
    subprocess.run(
        [mpicc, "-std=c11", "-D_GNU_SOURCE", "-pthread", "-O1", "-g", "-rdynamic", f"-I{SOURCES}",
         "-isystem", (SOURCES.parent / headers).resolve(), "-o", built, Path(__file__).with_name("share.c"),
         *sources, "-ldl"],
        check=True,
    )  # fmt: skip
    return built


#: Makes MPICH use the network also between the processes of one machine.
TCP = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
ANY_PROGRAM = "#include <mpi.h>\nint main(int n, char **v) { MPI_Init(&n, &v); return MPI_Finalize(); }\n"


@pytest.fixture(scope="module")
def tcp(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    mpicc, mpiexec = program("mpicc"), program("mpiexec")
    folder = tmp_path_factory.mktemp("any")
    (folder / "any.c").write_text(ANY_PROGRAM)
    built = mpicc and subprocess.run([mpicc, "any.c", "-o", "any"], cwd=folder, check=False)
    if not (built and mpiexec and built.returncode == 0):
        pytest.skip("no MPI (make setup installs one)")
    try:
        subprocess.run(
            [mpiexec, "-n", "2", "./any"], cwd=folder, check=True, timeout=60, env={**os.environ, **TCP}
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("this MPI has no TCP between the processes of one machine")
    return TCP


@pytest.fixture(autouse=True, params=["shared memory", "tcp"])
def network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tcp":
        for name, value in request.getfixturevalue("tcp").items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose bytes the program knows."""
    at = np.arange(SIZE, dtype=np.uint64)
    path = tmp_path_factory.mktemp("base") / "data"
    (((at * np.uint64(2654435761)) >> np.uint64(13)) ^ (at >> np.uint64(9))).astype(np.uint8).tofile(path)
    return path


def run(
    share: Path,
    data: Path,
    folder: Path,
    way: str,
    nodes: list[int],
    epochs: int = 3,
    seed: int = 1,
    **settings: str,
) -> list[dict[str, int]]:
    """Run with one rank for each entry of `nodes`, on that node; return the counts of each rank."""
    common = {"RD": "yes", "QUIET": "0", "RECHECK": "3600", "ADAPTIVE": "no", "PATIENCE": "60", **settings}
    command = [str(program("mpiexec"))]
    for rank, node in enumerate(nodes):
        local = folder / f"node{node}"
        local.mkdir(exist_ok=True)
        command += [":"] if rank else []
        command += ["-n", "1", "-env", "HDF5_CACHE_STORAGE_PATH", str(local)]
        command += ["-env", "HDF5_CACHE_STATS", str(folder / f"stats{rank}")]
        command += [str(share), str(data), str(seed), str(epochs), way]
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
    plain |= {f"HDF5_CACHE_{name}": value for name, value in common.items()}
    done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"stats{rank}").read_text().splitlines()[-1]) for rank in range(len(nodes))]


def total(counts: list[dict[str, int]], name: str) -> int:
    return sum(each[name] for each in counts)


@pytest.mark.parametrize("ranks", [2, 3])
def test_later_epochs_come_from_the_neighbours(share: Path, data: Path, tmp_path: Path, ranks: int) -> None:
    """Each rank reads another part in each epoch: after as many as ranks, every node has all of it."""
    counts = run(share, data, tmp_path, "parts", list(range(ranks)), epochs=ranks)
    # Whole blocks are copied: where two reads share one (every STEP bytes, and at the bounds of the parts),
    # the second may find it in the copy already.
    shared = (SIZE // STEP + ranks) * BLOCK
    # From the base file once for all; each node gets from others what is not its own part.
    assert SIZE - shared <= total(counts, "miss_bytes") <= SIZE
    crossed = (ranks - 1) * SIZE
    assert crossed - (ranks - 1) * shared <= total(counts, "neighbour_bytes") <= crossed + shared
    assert total(counts, "neighbour_late") == 0


def test_random_reads(share: Path, data: Path, tmp_path: Path) -> None:
    """Two ranks on one node and one on another; the program compares every byte."""
    counts = run(share, data, tmp_path, "random", [0, 1, 0])
    assert total(counts, "neighbour_bytes") > 0 < total(counts, "hit_bytes")


def test_a_neighbour_that_does_not_answer_is_passed_over(share: Path, data: Path, tmp_path: Path) -> None:
    """The other rank waits outside MPI for this one to end: to wait for it would be to wait for ever."""
    counts = run(share, data, tmp_path, "alone", [0, 1], epochs=2, PATIENCE="0.02")
    assert counts[0]["files_shared"] == 1
    data.with_name("data.done").unlink()


def test_nodes_without_room_are_served_by_others(share: Path, data: Path, tmp_path: Path) -> None:
    """Nobody may keep more than 64 blocks: what none of the nodes has comes from the base file."""
    counts = run(share, data, tmp_path, "random", [0, 1], STORAGE_SIZE=str(64 * BLOCK))
    assert all(each["filled_bytes"] <= 64 * BLOCK for each in counts)


def test_a_copy_of_an_earlier_program_is_told_of(share: Path, data: Path, tmp_path: Path) -> None:
    run(share, data, tmp_path, "parts", [0, 0], epochs=1)  # node 0 has all of it
    counts = run(share, data, tmp_path, "parts", [1, 0], epochs=2)
    assert total(counts, "miss_bytes") == 0
    assert counts[0]["neighbour_bytes"] >= SIZE - 2 * (SIZE // STEP + 2) * BLOCK


@pytest.mark.parametrize(
    "damage",
    ["truncate -s 8192 $f", "truncate -s 0 $f", f"truncate -s 0 $f; truncate -s {SIZE} $f", "rm $f"],
    ids=["cut", "emptied", "zeros", "removed"],
)
def test_what_a_neighbours_damaged_copy_holds_is_not_believed(
    share: Path, data: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank would read from the other one's copy, whose data file was damaged under the window."""
    if damage in ("truncate -s 8192 $f", "truncate -s 0 $f") and "MPIR_CVAR_NOLOCAL" in os.environ:
        pytest.skip(
            "network libraries do not end transfers from memory that is gone: docs/caching.md says so"
        )
    monkeypatch.setenv("SHARE_THEN", f'for f in "$HDF5_CACHE_STORAGE_PATH"/*/read/*/data; do {damage}; done')
    counts = run(share, data, tmp_path, "parts", [0, 1], epochs=3, PATIENCE="0.5")
    assert counts[0]["files_shared"] == 1
    if damage == "rm $f":  # who has it open reads on
        assert total(counts, "neighbour_damaged") == 0 < total(counts, "neighbour_bytes")
    else:
        assert total(counts, "neighbour_damaged") > 0
