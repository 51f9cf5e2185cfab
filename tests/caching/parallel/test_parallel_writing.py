"""Files written by MPI programs: what they write together is staged, and nobody ever sees anything else."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.caching.conftest import EAGER, needs_connector
from tiercel.layers.cachevol import log_program, settings

from .conftest import Nodes, built, end_after_a_kill, parallel_hdf5, slow_storage

pytestmark = needs_connector

NIGHTLY = pytest.mark.nightly

#: Bytes a second of the base storage: slow enough that staged data stay where they are for a while.
SLOW = 2e6


@pytest.fixture(scope="module")
def scribbler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("scribble.c", tmp_path_factory.mktemp("scribbler"))


def scribble(
    program: Path, folder: Path, seed: int, ranks: int, compressed: int = 0, steps: int = 70, **options: Any
) -> int:
    """Play a random program on a node for each rank; return how many writes its ranks staged together.

    `compressed`: percent of its datasets.
    """
    hdf5 = parallel_hdf5()
    assert hdf5 is not None
    file = folder / "base" / f"{seed}.h5"
    file.parent.mkdir(exist_ok=True)
    arguments = [str(program), str(file), str(seed), str(steps), str(compressed)]
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
    slow = slow_storage(file.parent, SLOW)
    command = [str(hdf5.mpiexec)]
    for rank in range(ranks):
        node = folder / f"node{seed}.{rank}"
        node.mkdir(exist_ok=True)
        own = settings(node, {**EAGER, "stats": str(folder / f"stats{seed}.{rank}"), **options})
        command += [":"] if rank else []
        command += ["-n", "1"]
        for name, value in own.items():
            command += ["-env", name, value]
        command += arguments
    played = subprocess.run(
        command, env={**plain, **slow}, capture_output=True, text=True, timeout=300, check=False
    )
    assert played.returncode == 0, played.stderr
    # Without the connector, and by another driver: the file itself.
    checked = subprocess.run(
        [*arguments, str(ranks)], env=plain, capture_output=True, text=True, timeout=120, check=False
    )
    assert checked.returncode == 0, checked.stderr
    counts = [json.loads((folder / f"stats{seed}.{r}").read_text().splitlines()[-1]) for r in range(ranks)]
    for each in counts:
        assert each["migrated_bytes"] == each["staged_bytes"]
    assert not list((folder / "base").glob(".*cachevol*"))
    assert not [log for rank in range(ranks) for log in folder.glob(f"node{seed}.{rank}/*/logs/*")]
    return sum(each["staged_together"] for each in counts)


@pytest.mark.parametrize(
    ("ranks", "seeds"),
    [(3, range(1)), *(pytest.param(n, range(100 * n, 100 * n + 8), marks=NIGHTLY) for n in (2, 3, 4))],
)
def test_random_programs(scribbler: Path, tmp_path: Path, ranks: int, seeds: range) -> None:
    """Together, alone, one after the other, without a flush between; resized, deleted, opened again."""
    staged = [scribble(scribbler, tmp_path, seed, ranks) for seed in seeds]
    assert sum(staged) > 2.5 * ranks * len(seeds)


@NIGHTLY
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("compressed", [50, 100])
def test_random_programs_with_compressed_data(
    scribbler: Path, tmp_path: Path, ranks: int, compressed: int
) -> None:
    """Chunks that several ranks write, that move as they grow, and whose metadata follow."""
    seeds = range(1000 * ranks + compressed, 1000 * ranks + compressed + 8)
    staged = [scribble(scribbler, tmp_path, seed, ranks, compressed) for seed in seeds]
    assert sum(staged) > 2.5 * ranks * len(seeds)


@NIGHTLY
@pytest.mark.parametrize("options", [{"size": 1 << 20}, {"adaptive": True}, {"checkpoint": False}])
def test_random_programs_under_other_settings(
    scribbler: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """`size`: not even the first segment of a log fits, so everything goes direct."""
    for seed in range(4):
        scribble(scribbler, tmp_path, seed, 3, **options)
        scribble(scribbler, tmp_path, 500 + seed, 3, 50, **options)


ROWS, COLUMNS = 512, 2048
CHECKPOINT = "new; dataset x 512 2048; barrier"


def halves(mode: str = "collective", close: str = "close") -> list[str]:
    return [f"{CHECKPOINT}; write x {mode} {256 * i} 256; {close}" for i in range(2)]


def expect(file: Path, shift: int = 0) -> None:
    with h5py.File(file) as opened:
        got = opened["x"][:].ravel()
    assert (got == np.arange(ROWS * COLUMNS, dtype="<i4") + shift).all()


def test_a_checkpoint_is_staged_and_there_when_the_file_is_closed(cluster: Nodes) -> None:
    counts = cluster.run(halves())
    assert [each["staged_bytes"] for each in counts] == [256 * COLUMNS * 4] * 2
    expect(cluster.file)


def flush_brings_it_there(
    cluster: Nodes, scripts: Callable[[str], list[str]], rate: float | None = None
) -> None:
    """`scripts`: of the ranks, with what follows their writes; the file is looked at while they still run."""
    go, done = cluster.folder / "go", cluster.folder / "done"
    child = cluster.start(scripts(f"flush; touch {done}; await {go}"), rate=rate)
    while child.poll() is None and not done.exists():
        time.sleep(0.005)
    expect(cluster.file)
    go.touch()
    child.communicate(timeout=300)
    assert child.returncode == 0


def test_a_flush_brings_it_there(cluster: Nodes) -> None:
    """Rank 0 has no part in the data that it waits for: those of rank 1."""
    flush_brings_it_there(cluster, lambda steps: halves(close=f"{steps}; close"))


def test_what_one_process_writes_alone_is_not_staged(cluster: Nodes) -> None:
    """The others could read it at once, and nothing would tell them to wait. It says so, once."""
    child = cluster.start(halves("independent"))
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0
    assert errors.count("not staged: in part: written by one process alone") == 1
    assert "HDF5_CACHE_INDEPENDENT" in errors
    counts = [json.loads(cluster.stats(rank).read_text()) for rank in range(2)]
    assert [each["staged_bytes"] for each in counts] == [0, 0]
    assert [each["reasons"][0]["file"] for each in counts] == [str(cluster.file)] * 2
    expect(cluster.file)


ALONE = {"independent": True}


def test_what_one_process_writes_alone_is_staged_where_the_program_allows_it(cluster: Nodes) -> None:
    counts = cluster.run(halves("independent"), **ALONE)
    assert [each["staged_bytes"] for each in counts] == [256 * COLUMNS * 4] * 2
    assert [each["staged_alone"] for each in counts] == [1, 1]
    expect(cluster.file)


def test_not_where_one_of_them_does_not(cluster: Nodes) -> None:
    counts = cluster.run(halves("independent"), None, [{"independent": True}, {"independent": False}])
    assert [each["staged_bytes"] for each in counts] == [0, 0]
    expect(cluster.file)


def test_a_flush_brings_what_one_process_wrote_alone(cluster: Nodes) -> None:
    """Rank 0 writes nothing and sees in the file what rank 1 wrote, once both have flushed."""
    read = f"read x int independent 0 {ROWS} 1 0 {COLUMNS} 1"
    writes = ["", f"write x independent 0 {ROWS}; "]
    scripts = [f"{CHECKPOINT}; {write}flush; barrier; {read}; close" for write in writes]
    counts = cluster.run(scripts, rate=3e7, **ALONE)
    assert [each["staged_alone"] for each in counts] == [0, 1]
    expect(cluster.file)


@pytest.mark.parametrize("second", ["independent", "collective"])
def test_the_later_one_of_two_writes_stays(cluster: Nodes, second: str) -> None:
    """Alone or together, over what the process itself wrote alone; and it reads its own."""
    scripts = [
        f"{CHECKPOINT}; shift 5; write x independent {256 * i} 256; "
        f"read x int independent {256 * i} 256 1 0 {COLUMNS} 1; write x {second} {256 * i} 256; "
        f"shift 3; write x independent {256 * i} 256; shift 0; write x {second} {256 * i} 256; close"
        for i in range(2)
    ]
    counts = cluster.run(scripts, rate=1e8, **ALONE)
    assert all(each["staged_alone"] >= 2 for each in counts)
    expect(cluster.file)


def test_fine_pieces_are_left_to_mpi(cluster: Nodes) -> None:
    """A row has 8 KiB. Rows that ranks take in turn are small pieces, which MPI puts together."""
    script = [
        "; ".join([CHECKPOINT, *[f"write x collective {r} 1" for r in range(i, 64, 2)], "close"])
        for i in range(2)
    ]
    counts = cluster.run(script)
    assert [each["staged_bytes"] for each in counts] == [0, 0]


def test_only_some_ranks_stage(cluster: Nodes) -> None:
    counts = cluster.run(halves(), each=[{}, {"write": False}])
    assert [each["staged_bytes"] for each in counts] == [0, 0]
    expect(cluster.file)


#: Rank 0 has much to bring to a slow file, piece by piece, rank 1 next to nothing.
UNEQUAL = [
    "; ".join([CHECKPOINT, *[f"write x collective {start + rows * i} {rows}" for i in range(8)]])
    for start, rows in ((0, 60), (480, 4))
]
SLOWLY = {"rate": 4e6, "fusion": 1}


def test_the_second_write_of_the_same_rows_is_the_one_that_stays(cluster: Nodes) -> None:
    """Rank 1 writes what rank 0 has staged, beginning with what is there last."""
    scripts = [
        f"{UNEQUAL[0]}; shift 7; write x collective 480 16; write x collective 496 16; close",
        f"{UNEQUAL[1]}; shift 7; write x collective 240 240; write x collective 0 240; close",
    ]
    counts = cluster.run(scripts, **SLOWLY)
    assert [each["staged_together"] for each in counts] == [10, 10]
    expect(cluster.file, 7)


def test_members_that_are_written_one_after_the_other_all_stay(tmp_path: Path) -> None:
    """h5bench's compounds lost members: the others were read from the file, where they were not yet."""
    nodes = Nodes(tmp_path, built("members.c", tmp_path))
    counts = nodes.run(["", ""], **SLOWLY)
    assert [each["staged_together"] for each in counts] == [4, 4]
    with h5py.File(nodes.file) as file:
        found = file["x"][:]
    for number, name in enumerate("abcd", start=1):
        assert np.allclose(found[name], np.arange(40_000) + 0.1 * number)


#: Steps of both ranks, and the rows that they change: one alone, or both in pieces too small to be staged.
CHANGES = [
    ("write x independent 470 10", "", range(470, 480)),
    ("", "write x independent 470 10", range(470, 480)),
    ("write x collective 470 5", "write x collective 475 5", range(470, 480)),
    ("write x collective 475 5", "write x collective 480 5", range(475, 485)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_staged_stays_over_what_is(cluster: Nodes, change: tuple[str, str, range]) -> None:
    """Rows 470 to 479 are the last of rank 0's that come to the file."""
    *steps, rows = change
    scripts = [
        f"{first}; barrier; shift 7; {each}; barrier; shift 0; close"
        for first, each in zip(UNEQUAL, steps, strict=True)
    ]
    cluster.run(scripts, **SLOWLY)
    with h5py.File(cluster.file) as opened:
        got = opened["x"][:].ravel() - np.arange(ROWS * COLUMNS)
    changed = np.zeros((ROWS, COLUMNS), bool)
    changed[rows] = True
    assert ((got == 7) == changed.ravel()).all()
    assert ((got == 0) == ~changed.ravel()).all()


@pytest.mark.parametrize("mode", ["independent", "collective"])
def test_staged_data_are_read_by_another_process(cluster: Nodes, mode: str) -> None:
    """play compares what it reads."""
    look = f"read x int {mode} 400 80 1 0 {COLUMNS} 1"
    alone = "" if mode == "independent" else look
    cluster.run(
        [f"{UNEQUAL[0]}; barrier; {alone}; barrier; close", f"{UNEQUAL[1]}; barrier; {look}; barrier; close"],
        **SLOWLY,
    )
    expect(cluster.file)


@pytest.mark.parametrize("end", ["finalize", "library; finalize"])
def test_the_end_of_mpi_before_the_end_of_the_file(cluster: Nodes, end: str) -> None:
    cluster.run(halves(close=end))
    expect(cluster.file)


def test_a_rank_is_killed(cluster: Nodes) -> None:
    """What was not flushed is lost, as without the connector; what is left on the nodes does no harm."""
    cluster.run(halves())
    scripts = [f"rw; shift 3; write x collective {256 * i} 256; {['die', 'barrier'][i]}" for i in range(2)]
    child = cluster.start(scripts)
    end_after_a_kill(child)
    program = log_program()
    assert program is not None
    for node in range(2):
        subprocess.run([program, "replay", cluster.local(node)], check=True, capture_output=True)
        assert not list(cluster.local(node).glob("*/logs/*"))
    with h5py.File(cluster.file) as opened:
        got = opened["x"][:].ravel()
    expected = np.arange(ROWS * COLUMNS)
    assert ((got == expected) | (got == expected + 3)).all()
    cluster.run([f"rw; shift 5; write x collective {256 * i} 256; close" for i in range(2)])
    expect(cluster.file, 5)


def test_a_process_waits_for_what_another_one_asked_to_hold_back(cluster: Nodes) -> None:
    """Rank 1 asked that nothing is migrated now, and then does nothing until rank 0 has read its rows."""
    write = [f"write x collective {256 * i} 256" for i in range(2)]
    read = f"read x int independent 0 {ROWS} 1 0 {COLUMNS} 1"
    cluster.run(
        [
            f"{CHECKPOINT}; pause; {write[0]}; {read}; barrier; start; close",
            f"{CHECKPOINT}; pause; {write[1]}; barrier; start; close",
        ]
    )
    expect(cluster.file)


@pytest.mark.parametrize("how", ["again", "beside"])
def test_the_file_opened_once_more_holds_what_was_written(cluster: Nodes, how: str) -> None:
    """Without a flush since: MPI wrote it there at once, and to open a file is no call that all make."""
    scripts = [
        f"{CHECKPOINT}; flush; pause; write x collective {256 * i} 256; barrier; {each}; barrier; start; "
        "close"
        for i, each in enumerate([f"{how} x 0 512", ""])
    ]
    counts = cluster.run(scripts)
    assert all(each["staged_together"] == 1 for each in counts)
    expect(cluster.file)


def test_what_lies_between_chunks_that_are_filled_stays(cluster: Nodes) -> None:
    """HDF5 fills a dataset's chunks when it first opens it, MPI rewrites what lies between, which is x."""
    with h5py.File(cluster.file, "w") as file:
        file.create_dataset("c", (8, 128), "<i4", chunks=(1, 128), fillvalue=7)
    scripts = [
        f"rw; chunks first 1 128 1; dataset x {ROWS} {COLUMNS}; barrier; "
        f"write x collective {256 * i} 256; look c; close"
        for i in range(2)
    ]
    counts = cluster.run(scripts, rate=4e6)
    assert all(each["staged_together"] == 1 for each in counts)
    expect(cluster.file)


def test_processes_that_try_staging_alone_still_agree_when_they_write_together(cluster: Nodes) -> None:
    """On a storage that is as fast, one write of 64 is staged: which one, all must find alike."""
    both = "; ".join(["write x collective {0} 256"] * 130)
    scripts = [
        f"{CHECKPOINT}; {alone}{both.format(256 * i)}; close"
        for i, alone in enumerate(["write x independent 0 256; " * 5, ""])
    ]
    cluster.run(scripts, adaptive=True, independent=True)
    expect(cluster.file)


# ---- Compressed data. ----

CHUNKS = f"new; compressed x {ROWS} {COLUMNS} 50; barrier"


def compressed(after: str = "", kind: str = CHUNKS) -> list[str]:
    """Chunks of 50 rows: one of them holds rows of both."""
    return [f"{kind}; write x collective {256 * i} 256; {after}close" for i in range(2)]


def test_a_compressed_checkpoint_is_staged_and_there_when_the_file_is_closed(cluster: Nodes) -> None:
    counts = cluster.run(compressed(), rate=2e7)
    assert [each["staged_together"] for each in counts] == [1, 1]
    with h5py.File(cluster.file) as opened:
        size = opened["x"].id.get_storage_size()
    assert sum(each["staged_bytes"] for each in counts) == size < 4 * ROWS * COLUMNS
    expect(cluster.file)


def test_a_flush_brings_compressed_data(cluster: Nodes) -> None:
    flush_brings_it_there(cluster, lambda steps: compressed(f"{steps}; "), rate=4e6)


def test_the_later_one_of_two_compressed_writes_stays(cluster: Nodes) -> None:
    """Chunks that do not fit where they were move, and what they leave is another's, whoever has that."""
    scripts = [
        f"{CHUNKS}; write x collective {256 * i} 256; shift 70000; write x collective {256 - 256 * i} 256; "
        f"shift 9; write x collective {256 * i} 200; write x collective {200 + 256 * i} 56; close"
        for i in range(2)
    ]
    counts = cluster.run(scripts, **SLOWLY)
    assert [each["staged_together"] for each in counts] == [4, 4]
    expect(cluster.file, 9)


@pytest.mark.parametrize("mode", ["independent", "collective"])
def test_staged_chunks_are_read_by_another_process(cluster: Nodes, mode: str) -> None:
    look = f"read x int {mode} 100 400 1 0 {COLUMNS} 1"
    alone = "" if mode == "independent" else look
    scripts = compressed("barrier; {0}; barrier; ")
    counts = cluster.run([scripts[0].format(alone), scripts[1].format(look)], **SLOWLY)
    assert [each["staged_together"] for each in counts] == [1, 1]


def test_without_room_on_the_node_chunks_go_direct(cluster: Nodes) -> None:
    counts = cluster.run(compressed(), size=1 << 20)
    assert [each["staged_bytes"] for each in counts] == [0, 0]
    assert sum(each["direct_bytes"] for each in counts) > 0
    expect(cluster.file)


def test_chunks_that_the_first_write_makes_are_not_staged(cluster: Nodes) -> None:
    """It fills all of them, and then writes some anew, which frees their space while the call goes on."""
    child = cluster.start(compressed(kind=CHUNKS.replace("compressed", "late")))
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors
    assert errors.count("H5D_ALLOC_TIME_LATE") == 1
    expect(cluster.file)


@pytest.mark.parametrize(("kind", "left"), [(CHECKPOINT, 4096 + 4 * 256 * COLUMNS - 100), (CHUNKS, 4096)])
def test_a_log_that_was_cut_short_is_an_error_of_all_at_the_close(
    cluster: Nodes, kind: str, left: int
) -> None:
    """And nothing more: HDF5 closes once more at its end what it could not close, and the program goes on."""
    go, ready = cluster.folder / "go", [cluster.folder / f"ready{i}" for i in range(2)]
    scripts = [
        f"{kind}; pause; write x collective {256 * i} 256; touch {ready[i]}; await {go}; refused close"
        for i in range(2)
    ]
    child = cluster.start(scripts)
    while child.poll() is None and not all(path.exists() for path in ready):
        time.sleep(0.005)
    (segment,) = cluster.local(1).glob("*/logs/*/segment-0")
    os.truncate(segment, left)  # within a page the kernel puts zeros for what is gone
    go.touch()
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors


def test_metadata_do_not_come_before_the_chunks_that_they_tell_of(cluster: Nodes) -> None:
    """Both are killed once HDF5 has had to write metadata.

    The first chunk has moved by then: what was flushed of it and not changed since, ten rows, would be lost.
    """
    halves = [f"write x collective {256 * i} 256" for i in range(2)]
    scripts = [
        f"{CHUNKS}; groups 1; {half}; shift 9; {half}; flush; pause; shift 70000; "
        f"write x collective {20 * i} 20; groups 4000; die"
        for i, half in enumerate(halves)
    ]
    end_after_a_kill(cluster.start(scripts))
    with h5py.File(cluster.file) as opened:
        got = opened["x"][:] - np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    assert (got[40:] == 9).all()
    assert np.isin(got[:40], [9, 70000]).all()
