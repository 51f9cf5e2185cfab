"""Files read by MPI programs: right however the ranks read, and from the neighbours where these have it.

Upstream crashes, hangs or returns wrong data in most of these cases.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.caching.conftest import needs_connector

from .conftest import Nodes, end_after_a_kill

pytestmark = needs_connector

ROWS, COLUMNS = 1003, 257
DATASET = ROWS * COLUMNS * 4  # bytes
BLOCK = 4096


def rows(
    first: int, count: int, by: int = 1, name: str = "x", kind: str = "int", mode: str = "independent"
) -> str:
    """A step that reads whole rows."""
    return f"read {name} {kind} {mode} {first} {count} {by} 0 {COLUMNS} 1"


#: What follows an epoch, so that the next one finds at the neighbours all that this one read.
EPOCH = "flush; barrier"


def epochs(*parts: str) -> str:
    """A script of one epoch after another, in a file that stays open."""
    return "open; " + "".join(f"{part}; {EPOCH}; " for part in parts) + "close"


def wait_for(child: subprocess.Popen[str], *files: Path) -> None:
    while child.poll() is None and not all(file.exists() for file in files):
        time.sleep(0.005)


def total(counts: list[dict[str, int]], name: str) -> int:
    return sum(each[name] for each in counts)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_second_epoch_comes_from_the_neighbours(cluster: Nodes, ranks: int) -> None:
    """Each rank reads another part than before, of rows that the ranks do not divide."""
    cluster.make()
    part = ROWS // ranks
    bounds = [(i * part, part if i < ranks - 1 else ROWS - i * part) for i in range(ranks)]
    scripts = [epochs(rows(*bounds[i]), rows(*bounds[(i + 1) % ranks])) for i in range(ranks)]
    counts = cluster.run(scripts)
    assert all(each["files_shared"] == 1 and each["neighbour_late"] == 0 for each in counts)
    # What a rank reads in the second epoch was read by another one in the first: but for blocks across the
    # bounds, which both have, all of it crosses from node to node, once.
    crossed = total(counts, "neighbour_bytes")
    assert DATASET - 4 * ranks * BLOCK <= crossed <= DATASET + 4 * ranks * BLOCK
    # The data came from the base file once for all of them; each rank reads the metadata by itself, and what
    # HDF5's buffer for small reads (64 KiB) holds at its bounds.
    assert total(counts, "miss_bytes") <= DATASET + ranks * (65536 + 65536)


def test_the_second_epoch_reads_nothing_of_the_base_file(cluster: Nodes, tmp_path: Path) -> None:
    """The base file's data are overwritten behind the connector's back, which looks again in an hour."""
    cluster.make()
    half = ROWS // 2
    go, done = tmp_path / "go", tmp_path / "done"
    pause = f"flush; barrier; touch {done}%d; await {go}; barrier"
    scripts = [
        f"open; {rows(0, half)}; {pause % 0}; {rows(half, ROWS - half)}; barrier; close",
        f"open; {rows(half, ROWS - half)}; {pause % 1}; {rows(0, half)}; barrier; close",
    ]
    child = cluster.start(scripts)
    wait_for(child, tmp_path / "done0", tmp_path / "done1")
    with h5py.File(cluster.file) as file:
        begin = file["x"].id.get_offset()
    with cluster.file.open("r+b") as raw:
        raw.seek(begin)
        raw.write(b"\xee" * DATASET)
    go.touch()
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors


def test_ranks_of_one_node_share_its_copy(cluster: Nodes) -> None:
    """Two nodes of two ranks: what the other rank of the node read does not come over MPI."""
    cluster.make()
    half = ROWS // 2
    first, second = rows(0, half), rows(half, ROWS - half)
    # Ranks 0 and 2 are on node 0, 1 and 3 on node 1; in the second epoch rank 2 reads what rank 0 did.
    counts = cluster.run(
        [
            epochs(first, ""),
            epochs(second, ""),
            epochs("", first),
            epochs("", second),
        ],
        [0, 1, 0, 1],
    )
    assert total(counts, "neighbour_bytes") <= 8 * BLOCK  # metadata, and blocks at the bound
    assert counts[2]["hit_bytes"] >= half * COLUMNS * 4 - 2 * BLOCK


def test_one_node_needs_no_neighbours(cluster: Nodes) -> None:
    """Its copy is made in the background, and whole when the first program has ended."""
    cluster.make()
    for _ in range(2):
        counts = cluster.run([epochs(rows(0, ROWS), rows(0, ROWS))] * 2, [0, 0])
        assert total(counts, "files_shared") == 0 == total(counts, "neighbour_bytes")
    assert all(each["hit_bytes"] >= DATASET for each in counts), counts


def test_a_copy_of_an_earlier_program_serves_the_other_nodes(cluster: Nodes) -> None:
    """Node 0 has all of the file from the program before; node 1 gets it from there."""
    cluster.make()
    cluster.run([epochs(rows(0, ROWS))])
    counts = cluster.run([epochs(""), epochs(rows(0, ROWS))])
    assert counts[1]["neighbour_bytes"] >= DATASET - BLOCK
    assert counts[1]["miss_bytes"] < 3 * 65536  # metadata, read while the file was being opened


SELECTIONS = {
    "strided rows": rows(3, 300, 3),
    "strided columns": "read x int independent 1 500 2 5 36 7",
    "a part of each row": "read x int independent 0 1003 1 100 50 1",
    "points": "points x independent 5000 7",
    "without stride": "plain x 77 123 257",
    "wider type": rows(10, 900, kind="double"),
    "narrower type": rows(0, 100, kind="short"),
    "swapped bytes": rows(0, 1003, name="swapped"),
    "compressed": rows(17, 900, name="chunked"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_any_selection_and_memory_type(cluster: Nodes, name: str) -> None:
    """In the first epoch each rank reads another half of a dataset; in three more, all read the same."""
    cluster.make()
    half = ROWS // 2
    step = SELECTIONS[name]
    dataset = {"swapped bytes": "swapped", "compressed": "chunked"}.get(name, "x")
    halves = [rows(0, half, name=dataset), rows(half, ROWS - half, name=dataset)]
    counts = cluster.run([epochs(part, step, step, step) for part in halves])
    assert total(counts, "neighbour_bytes") > 0


@pytest.mark.parametrize("name", ["x", "swapped", "chunked"])
def test_collective_reads(cluster: Nodes, name: str) -> None:
    """Ranks select different rows, and one of them nothing."""
    cluster.make()
    scripts = [
        epochs(*[rows(5 * i, 301 + i, 2, name, mode="collective") for i in range(4)]),
        epochs(*[rows(600 - i, 200, 1, name, mode="collective") for i in range(4)]),
        epochs(*[rows(0, 0, 1, name, mode="collective")] * 4),
    ]
    cluster.run(scripts)


def test_collective_and_independent_reads_of_one_list_of_datasets(cluster: Nodes) -> None:
    cluster.make()
    steps = [
        rows(0, 400, mode="collective"), rows(0, 400), "points x collective 100 3",
        rows(1, 999, mode="collective"), rows(1, 999, name="chunked", mode="collective"),
        "points chunked independent 100 4",
    ]  # fmt: skip
    cluster.run([epochs(*steps), epochs(*steps)])


def test_a_batch_straddles_what_the_ranks_read_before(cluster: Nodes) -> None:
    cluster.make()
    scripts = [
        epochs(rows(0, 334), rows(300, 100), rows(600, 403)),
        epochs(rows(334, 334), rows(600, 200), rows(300, 400)),
        epochs(rows(668, 335), rows(0, ROWS), rows(0, ROWS)),
    ]
    counts = cluster.run(scripts)
    assert counts[2]["neighbour_bytes"] >= 660 * COLUMNS * 4


def test_rows_are_read_again_before_all_were_read(cluster: Nodes) -> None:
    cluster.make()
    again = [rows(0, 10), rows(0, 10), rows(5, 20), rows(0, 10)]
    cluster.run([epochs(*again), epochs(*again[::-1])])


def test_one_rank_reads_alone(cluster: Nodes, tmp_path: Path) -> None:
    """The other one waits outside MPI, so that it cannot answer. Upstream hangs in a fence."""
    cluster.make()
    done = tmp_path / "done"
    half = ROWS // 2
    counts = cluster.run(
        [f"open; {rows(0, half)}; {EPOCH}; {rows(0, ROWS)}; {rows(3, 900)}; touch {done}; barrier; close",
         f"open; {rows(half, ROWS - half)}; {EPOCH}; await {done}; barrier; close"],
        patience=0.05,
    )  # fmt: skip
    assert counts[0]["files_shared"] == 1


def test_a_rank_closes_while_others_read_on(cluster: Nodes, tmp_path: Path) -> None:
    """H5Fclose waits for nobody, and what is closed still answers."""
    cluster.make()
    closed = tmp_path / "closed"
    half = ROWS // 2
    counts = cluster.run(
        [f"open; {rows(0, half)}; {EPOCH}; close; touch {closed}; barrier",
         f"open; {rows(half, ROWS - half)}; {EPOCH}; await {closed}; {rows(0, ROWS)}; close; barrier"]
    )  # fmt: skip
    assert counts[1]["neighbour_bytes"] >= half * COLUMNS * 4 - 2 * BLOCK


def test_many_openings_one_after_the_other(cluster: Nodes) -> None:
    """The windows of each are freed by the next; every opening finds what the node has."""
    cluster.make()
    script = "".join(f"open; {rows(50 * i, 50)}; points x independent 50 {i}; close; " for i in range(20))
    counts = cluster.run([script, script, script])
    assert all(each["files_shared"] == 20 for each in counts)


def test_a_file_of_one_rank_alone(cluster: Nodes) -> None:
    """On MPI_COMM_SELF nobody else takes part."""
    cluster.make()
    cluster.run([f"self; {rows(0, ROWS)}; close; barrier", "barrier; self; close"])


def test_the_program_sees_the_driver_that_it_asked_for(cluster: Nodes) -> None:
    cluster.make()
    cluster.run([epochs("driver", rows(0, 10))] * 2)


def test_links_to_other_files(cluster: Nodes) -> None:
    """The file that a link leads to is opened by each rank by itself."""
    cluster.make()
    cluster.make(name="linked.h5")
    cluster.run(
        [
            epochs(rows(0, 100, name="link"), rows(7, 300, name="link")),
            epochs(rows(500, 100, name="link"), ""),
        ]
    )


def test_writers_are_left_as_they_are(cluster: Nodes) -> None:
    """Written by all ranks, and read again right after: fresh data, though the node has an old copy."""
    cluster.make()
    again = f"open; {rows(0, ROWS)}; {EPOCH}; close; "
    script = (
        again
        + "rw; fill x 7; close; barrier; shift 7; "
        + again
        + "rw; shift 7; "
        + rows(0, ROWS)
        + "; close"
    )
    cluster.run([script, script], recheck=0)


def test_a_file_open_for_writing_is_not_read_beside_hdf5(cluster: Nodes) -> None:
    """What HDF5 holds of it is not in the file: HDF5 itself must serve the second opening."""
    cluster.make()
    script = f"rw; fill x 3; open; shift 3; {rows(0, ROWS)}; flush; barrier; {rows(0, ROWS)}; close"
    counts = cluster.run([script, script])
    assert total(counts, "files_shared") == 0


def test_a_file_changed_between_epochs(cluster: Nodes, tmp_path: Path) -> None:
    """While it is open, by somebody else: the next read is of what is there now, on all nodes."""
    cluster.make()
    go, done = tmp_path / "go", tmp_path / "done"
    half = ROWS // 2
    then = f"await {go}; barrier"
    last = f"shift 9; {rows(0, ROWS)}; {EPOCH}; {rows(5, 500)}; close"
    child = cluster.start(
        [f"open; {rows(0, half)}; {EPOCH}; {rows(half, 100)}; touch {done}0; {then}; {last}",
         f"open; {rows(half, ROWS - half)}; {EPOCH}; {rows(0, 100)}; touch {done}1; {then}; {last}"],
        recheck=0,
    )  # fmt: skip
    wait_for(child, tmp_path / "done0", tmp_path / "done1")
    with h5py.File(cluster.file) as file:
        begin = file["x"].id.get_offset()
    with cluster.file.open("r+b") as raw:
        raw.seek(begin)
        raw.write((np.arange(ROWS * COLUMNS) + 9).astype("<i4").tobytes())
    go.touch()
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors


def test_a_file_changed_between_two_programs(cluster: Nodes) -> None:
    cluster.make()
    cluster.run([epochs(rows(0, ROWS))] * 2)
    cluster.make(shift=4)
    cluster.run(["shift 4; " + epochs(rows(0, ROWS), rows(0, ROWS))] * 2)


def test_the_node_local_storage_is_full(cluster: Nodes) -> None:
    """One node has room for all, the other for 64 KiB: it is served by the first one, epoch after epoch."""
    cluster.make()
    each = [{}, {"size": 65536}]
    counts = cluster.run(
        [epochs(rows(0, ROWS), "", ""), epochs("", rows(0, ROWS), rows(0, ROWS))],
        each=each,
    )
    assert counts[1]["neighbour_bytes"] >= 2 * (DATASET - 65536 - 2 * BLOCK)
    assert counts[1]["miss_bytes"] < 3 * 65536


def test_no_node_has_room(cluster: Nodes) -> None:
    cluster.make()
    counts = cluster.run([epochs(rows(0, ROWS), rows(0, ROWS))] * 2, size=4096)
    assert total(counts, "miss_bytes") >= 2 * 2 * (DATASET - 2 * 4096)


def test_only_some_ranks_have_caching_on(cluster: Nodes) -> None:
    """They agree that nobody has: HDF5 opens the file, in which all must take part."""
    cluster.make()
    counts = cluster.run(
        [epochs(rows(0, ROWS), rows(0, ROWS, mode="collective"))] * 2, each=[{}, {"read": False}]
    )
    assert total(counts, "miss_bytes") == 0


def test_a_rank_without_patience_asks_nobody(cluster: Nodes) -> None:
    cluster.make()
    counts = cluster.run([epochs(rows(0, ROWS), rows(0, ROWS))] * 2, each=[{}, {"patience": 0}])
    assert total(counts, "files_shared") == 0


@pytest.mark.parametrize("end", ["finalize", "flush; finalize", "library; finalize"])
def test_the_end_of_mpi_before_the_end_of_the_file(cluster: Nodes, end: str) -> None:
    """h5py programs that leave their files open do it."""
    cluster.make()
    cluster.run([f"open; {rows(0, 500)}; {end}", f"open; {rows(500, 503)}; {end}"])


def test_a_file_that_is_not_there(cluster: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    said = cluster.folder / "said"
    monkeypatch.setenv("PLAY_SAID", str(said))
    child = cluster.start(["open", "open"])
    child.communicate(timeout=300)
    assert child.returncode != 0
    assert "H5Fopen" in said.read_text()


@pytest.mark.parametrize("after", [1, 40, 300])
def test_a_rank_is_killed(cluster: Nodes, after: int) -> None:
    """Whatever it left in its copy is right, or not told of: later programs read what is in the file."""
    cluster.make()
    steps = "; ".join(f"points x independent 20 {i}; {rows(i, 3)}" for i in range(after))
    child = cluster.start([f"open; {steps}; die", f"open; {steps}; {rows(0, ROWS)}; barrier; close"])
    end_after_a_kill(child)
    cluster.run(
        [epochs(rows(0, ROWS), rows(0, ROWS)), epochs("points chunked independent 99 1", rows(0, ROWS))]
    )


def test_random_programs(cluster: Nodes) -> None:
    """Ranks read random parts, each in its own way, in epochs that some of them leave out."""
    rng = np.random.default_rng(20261121)
    cluster.make()
    for _ in range(12):
        ranks = int(rng.integers(2, 5))
        nodes = [int(n) for n in rng.integers(0, 3, ranks)]
        scripts = [epochs(*[steps(rng) for _ in range(3)]) for _ in range(ranks)]
        each = [{"size": int(rng.choice([65536, 1 << 30]))} for _ in range(ranks)]
        cluster.run(scripts, nodes, each=each, patience=float(rng.choice([0.001, 60])))


def steps(rng: np.random.Generator) -> str:
    parts = []
    for _ in range(int(rng.integers(0, 6))):
        name, kind = rng.choice(["x", "swapped", "chunked"]), rng.choice(["int", "double"])
        first, by = int(rng.integers(0, ROWS - 1)), int(rng.integers(1, 5))
        column, step = int(rng.integers(0, COLUMNS - 1)), int(rng.integers(1, 4))
        count = int(rng.integers(1, (ROWS - 1 - first) // by + 2))
        wide = int(rng.integers(1, (COLUMNS - 1 - column) // step + 2))
        parts.append(f"read {name} {kind} independent {first} {count} {by} {column} {wide} {step}")
    return "; ".join(parts)
