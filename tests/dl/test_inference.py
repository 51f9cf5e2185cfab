"""The programs of inference: what they do, counted by hand and by strace, and what a study makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import Project
from tiercel.documents import parse
from tiercel.errors import UserError
from tiercel.inference.kv_cache import Cache, Settings, serve
from tiercel.inference.tally import latencies
from tiercel.inference.vector_search import Search
from tiercel.inference.vector_search import Settings as VectorSettings
from tiercel.inference.workload import KVCacheWorkload, VectorSearchWorkload
from tiercel.pagecache import memory_backed, residency

BLOCK = 4096
KV: dict[str, Any] = {
    "block_size": BLOCK, "capacity": 4 * BLOCK, "conversations": 1, "skew": 1.0, "context_blocks": 4,
    "new_blocks": 2, "requests": 4, "cold": True,
}  # fmt: skip
VECTORS: dict[str, Any] = {
    "index_size": 1 << 20, "node_size": 4096, "degree": 8, "beam": 4, "hops": 3, "nodes_in_memory": 8,
    "queries": 20, "cold": True,
}  # fmt: skip


def start(folder: Path, operation: str, keys: dict[str, Any], *wrap: str, processes: int = 1) -> Any:
    """Run the program; its exit code and words, with results in ``folder/out``."""
    for name in ("data", "out"):
        (folder / name).mkdir(exist_ok=True)
    spec = json.dumps({"operation": operation, "seed": 5, **keys})
    argv = [
        *wrap, sys.executable, "-m", "tiercel.inference", "--spec", spec, "--data", str(folder / "data"),
        "--output", str(folder / "out"), "--processes", str(processes),
    ]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_a_file_system_in_memory_is_told(tmp_path: Path) -> None:
    if not memory_backed("/dev/shm"):
        pytest.skip("/dev/shm is not in memory here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        assert start(Path(place), "kv-cache", KV).returncode == 0
        assert json.loads((Path(place) / "out" / "inference.json").read_text())["memory_backed"] is True


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((folder / "out" / "inference.json").read_text())
    return {row["operation"]: row for row in content["rows"]}


def blocks(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.rglob("*.kv"))


def test_the_least_recently_used_block_goes_and_of_a_conversation_the_last(tmp_path: Path) -> None:
    cache = Cache(tmp_path, Settings(**{**KV, "capacity": 3 * BLOCK}), "s")
    for block in ((0, 0), (0, 1), (1, 0)):
        cache.put(block)
    cache.used(0, 2)
    cache.put((2, 0))  # makes room: of 1-0, 0-1 and 0-0, conversation 1 was not used for longest
    assert blocks(tmp_path) == ["0-0", "0-1", "2-0"]
    cache.put((2, 1))  # of conversation 0 the last block: the first is of use alone
    assert blocks(tmp_path) == ["0-0", "2-0", "2-1"]
    assert [cache.holds(b) for b in ((0, 0), (0, 1), (1, 0))] == [True, False, False]


def test_one_conversation_after_another_by_hand(tmp_path: Path) -> None:
    # Request 1 writes 2 blocks; 2 reads them and writes 2. A third would be 6 blocks of a context of 4: a new
    # conversation begins and writes 2, for which 2 of the first go; request 4 reads them and writes 2 more.
    done = serve(KV, tmp_path, "1:0")
    assert len(done["kv-read"].seconds) == 2 + 2
    assert len(done["kv-write"].seconds) == 4 * 2
    assert len(done["kv-evict"].seconds) == 4
    assert (done["kv-request"].found, done["kv-request"].wanted) == (4, 4)
    assert len(done["kv-request"].seconds) == 2  # those that found something
    assert done["kv-read"].bytes == done["kv-request"].bytes == 4 * BLOCK
    assert blocks(tmp_path) == ["1-0", "1-1", "1-2", "1-3"]


def test_turns_as_mlperf_storage_has_them_by_hand(tmp_path: Path) -> None:
    # A turn is an entry. Turn t reads the t - 1 entries before it, writes one, and reads that 3 times: in
    # turns 1 to 4 of a conversation 0 + 1 + 2 + 3 earlier ones and 4 * 3 of its own; then the next begins.
    keys = {**KV, "new_blocks": 1, "decode_reads": 3, "requests": 8, "capacity": 8 * BLOCK}
    done = serve(keys, tmp_path, "1:0")
    assert len(done["kv-write"].seconds) == 8
    assert len(done["kv-read"].seconds) == 2 * (6 + 12)
    assert done["kv-read"].bytes == 36 * BLOCK
    # What a first token waits for is what was there before its request.
    assert done["kv-request"].bytes == 2 * 6 * BLOCK
    assert (done["kv-request"].found, done["kv-request"].wanted) == (12, 12)
    assert not done["kv-evict"].seconds


def test_percentiles_by_hand() -> None:
    found = latencies([float(n) for n in range(1, 1001)])
    assert found == {"mean": 500.5, "p50": 500.0, "p90": 900.0, "p99": 990.0, "p999": 999.0, "max": 1000.0}
    assert latencies([2.0])["p50"] == latencies([2.0])["p999"] == 2.0
    assert latencies([]) == {}


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def calls(log: Path, name: str, needle: str) -> list[str]:
    """Return the lines of a system call that name something and did not fail."""
    lines = [line for part in log.parent.glob(f"{log.name}.*") for line in part.read_text().splitlines()]
    found = [line for line in lines if re.match(rf"{name}\(", line)]
    return [line for line in found if needle in line and " = -1 " not in line]


def moved(lines: list[str]) -> int:
    return sum(int(line.rpartition(" = ")[2].split()[0]) for line in lines)


STRACE = ("strace", "-ff", "-y", "-qq", "-o")  # a log for each process: no call is cut in two


@needs_strace
def test_the_cache_does_what_it_says_as_strace_counts_it(tmp_path: Path) -> None:
    keys = {**KV, "capacity": 24 * BLOCK, "conversations": 6, "context_blocks": 8, "requests": 60}
    log = tmp_path / "log"
    answer = start(tmp_path, "kv-cache", keys, *STRACE, str(log), processes=2)
    assert answer.returncode == 0, answer.stderr
    found = rows(tmp_path)
    opened = calls(log, "openat", ".kv")
    made = [line for line in opened if "O_CREAT" in line]
    assert all("O_EXCL" in line for line in made), "what is there is never written again"
    assert found["kv-write"]["operations"] == len(made)
    assert found["kv-write"]["bytes"] == moved(calls(log, "write", ".kv")) == len(made) * BLOCK
    assert found["kv-read"]["operations"] == len(opened) - len(made)
    read = (len(opened) - len(made)) * BLOCK
    assert found["kv-read"]["bytes"] == moved(calls(log, "preadv2?", ".kv")) == read
    gone = len(calls(log, "unlink(?:at)?", ".kv"))
    assert found["kv-evict"]["operations"] == gone > 0
    assert len(made) - gone == len(blocks(tmp_path / "data"))
    # The cache of each process is full, and no larger.
    assert [len(blocks(tmp_path / "data" / f"process{n}")) for n in (0, 1)] == [24, 24]
    assert 0 < found["kv-request"]["hit_share"] < 1, "some of what was wanted was evicted"
    assert len(calls(log, "fdatasync", ".kv")) == len(made), "each block is durable before it is dropped"


@needs_strace
def test_the_search_does_what_it_says_as_strace_counts_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    answer = start(tmp_path, "vector-search", VECTORS, *STRACE, str(log), processes=2)
    assert answer.returncode == 0, answer.stderr
    found = rows(tmp_path)
    reads = calls(log, "preadv2?", "/index>")
    # Two processes, 20 queries of 3 hops of 4 nodes. The first hop has the 8 nodes that are in memory.
    wanted = 2 * 20 * 3 * 4
    assert found["vector-query"]["operations"] == 40
    assert found["vector-read"]["operations"] == len(reads) <= wanted - 2 * 20 * 4
    assert found["vector-query"]["hit_share"] == pytest.approx(1 - len(reads) / wanted)
    assert found["vector-read"]["bytes"] == moved(reads) == 4096 * len(reads)
    offsets = {int(re.search(r"\], 1, (\d+)", line)[1]) for line in reads}  # type: ignore[index]
    assert all(offset % 4096 == 0 and 8 * 4096 <= offset < 1 << 20 for offset in offsets)
    assert found["generate"]["bytes"] == moved(calls(log, "pwrite64", "/index>")) == 1 << 20


@pytest.mark.parametrize("node_size", [512, 4096, 6144])
def test_a_cold_search_leaves_no_node_in_memory(tmp_path: Path, node_size: int) -> None:
    keys = {**VECTORS, "node_size": node_size, "nodes_in_memory": 0}
    assert start(tmp_path, "vector-search", keys).returncode == 0
    left = residency([str(tmp_path / "data" / "index")])
    if left.memory_backed or left.method == "none":
        pytest.skip("this file system does not say, or is memory")
    # A node of 512 bytes is an eighth of a page, one of 6,144 ends within one: all of these pages go.
    assert left.pages >= 255
    assert left.resident == 0


def test_a_query_reads_no_node_twice(tmp_path: Path) -> None:
    # 64 nodes and 15 hops of 4: a search that read one again would find it in memory, and be too fast.
    keys = {**VECTORS, "index_size": 64 * BLOCK, "degree": 64, "hops": 15}
    search = Search(VectorSettings(**keys), tmp_path, "s")
    for _ in range(20):
        nodes = [node for hop in search.walk() for node in hop]
        assert len(nodes) == len(set(nodes)) == 60


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index").mkdir()
    answer = start(tmp_path, "vector-search", VECTORS, processes=2)
    assert answer.returncode == 2 and "data/index: Is a directory" in answer.stderr
    assert not (tmp_path / "out" / "inference.json").exists()


def test_a_block_that_is_not_what_was_written_ends_the_run(tmp_path: Path) -> None:
    cache = Cache(tmp_path, Settings(**KV), "s")
    cache.put((0, 0))
    (tmp_path / "0-0.kv").write_bytes(bytes(BLOCK - 1))
    with pytest.raises(Exception, match="is not the block that was written"):
        cache.get((0, 0))


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        (KVCacheWorkload, {"capacity": "1MiB"}, "capacity must hold a whole conversation: 33554432 bytes"),
        (KVCacheWorkload, {"new_blocks": 17}, "new_blocks must not be more than context_blocks"),
        (VectorSearchWorkload, {"beam": 65}, "degree must be at least beam"),
        (VectorSearchWorkload, {"index_size": "64KiB"}, "index_size must hold as many nodes"),
        # 256 MiB in nodes of 4 KiB are 65,536; with one hop only the entry's 64 neighbours are met.
        (VectorSearchWorkload, {"nodes_in_memory": 65536}, "nodes_in_memory must be below 65536"),
        (VectorSearchWorkload, {"nodes_in_memory": 64, "hops": 1}, "nodes_in_memory must be below 64"),
    ],
)
def test_contradictions_are_named(kind: Any, keys: dict[str, Any], said: str) -> None:
    operation = "kv-cache" if kind is KVCacheWorkload else "vector-search"
    with pytest.raises(UserError, match=said):
        parse(kind, {"operation": operation, **keys}, "study")


STUDY = """
study: served
title: Inference
engines: [inferkernel]
repetitions: {minimum: 2, maximum: 2, target: 0.5}
twins: false
timeout: 60s
experiments:
  serving:
    processes_per_node: [2]
    workloads:
      cache: {operation: kv-cache, block_size: 64KiB, capacity: 1MiB, context_blocks: 8, requests: 20}
      search: {operation: vector-search, index_size: 1MiB, degree: 16, hops: 3, queries: 10}
"""


def test_a_study_measures_and_reports_them(project: Project) -> None:
    project.study("served", STUDY)
    done = project.tiercel("evaluate", "--study", "served")
    assert done.returncode == 0, done.stderr
    found = pd.read_parquet(project.results / "observations.parquet")
    measured = {"kv-request", "kv-read", "kv-write", "vector-query", "vector-read"}
    assert set(found["operation"]) - {"kv-evict"} == measured | {"generate"}
    assert set(found[found["role"] == "measured"]["operation"]) == measured
    assert found.loc[found["operation"] == "vector-query", "operations"].tolist() == [20, 20]
    assert found.loc[found["operation"] == "kv-request", "hit_share"].between(0, 1).all()
    page = (project.results / "report" / "index.html").read_text()
    assert "Cache of keys and values" in page and "Search of vectors" in page
