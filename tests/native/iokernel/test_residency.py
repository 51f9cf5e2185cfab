"""What the page cache held before a read."""

import json

import pytest
from tests.private_mounts import require_mount, run_script

SHAPE = "-n 2 -t 64k -b 1m -o f"
TOTAL = 2 * 2**20


def test_a_file_just_written_is_resident(iokernel):
    residency = iokernel.good(SHAPE).results[1]["residency"]
    assert residency["fileBytes"] == TOTAL and residency["evictRequested"] is False
    assert residency["method"] in ("cachestat", "mincore", "none")
    if residency["method"] != "none":
        assert residency["residentBytes"] == TOTAL and residency["fraction"] == 1


def test_eviction_leaves_nothing_on_a_disk(iokernel, disk):
    for extra in ([], ["-F"], ["-F --task-offset 1"]):
        write, read = iokernel.good(SHAPE, "--evict", *extra).results
        assert write["residency"] is None
        residency = read["residency"]
        assert residency["evictRequested"] is True and residency["memoryBacked"] is False
        assert residency["method"] != "none" and residency["fileBytes"] == TOTAL
        assert residency["residentBytes"] == 0 and residency["fraction"] == 0
        assert residency["dirtyBytes"] in (0, None)


def test_nothing_can_be_evicted_from_memory(engine_in, memory):
    residency = engine_in(memory).good(SHAPE, "--evict").results[1]["residency"]
    assert residency["memoryBacked"] is True and residency["residentBytes"] == residency["fileBytes"] == TOTAL


def test_prepare_only_evicts_and_moves_nothing(iokernel, disk):
    iokernel.good(SHAPE, "-w -k")
    iokernel.path("f").read_bytes()
    before = iokernel.path("f").stat()
    run = iokernel.good(SHAPE, "-r --evict --prepare-only")
    (result,) = run.results
    assert result["prepared"] is True and result["residency"]["residentBytes"] == 0
    assert "bwMiB" not in result and run.document["summary"] == []
    assert iokernel.path("f").stat().st_size == TOTAL  # kept, though -k was not given
    assert iokernel.path("f").stat().st_mtime_ns == before.st_mtime_ns


def test_prepare_only_checks_the_size(iokernel):
    iokernel.path("f").write_bytes(b"x" * (TOTAL - 1))
    run = iokernel(SHAPE, "-r --prepare-only")
    assert run.status == 1 and str(TOTAL - 1) in run.document["error"]["message"]
    assert run.document["error"]["operation"] == "check"


#: Warm, evicted, warm again: what is in memory of a file on an overlay at $PWD/m.
ON_OVERLAY = """
mkdir -p low up work m
mount -t overlay overlay -o "lowerdir=$PWD/low,upperdir=$PWD/up,workdir=$PWD/work" m
%s
for extra in "-w -r" "-r --evict" "-r"; do
    "$IOKERNEL" $extra -t 64k -b 1m -k -o m/f --summary-file s.json
    cat s.json
    echo
done
"""


def overlay_reads(build, folder, script):
    printed = run_script(script, folder, IOKERNEL=str(build / "iokernel"))
    documents = [json.loads(part + "}") for part in printed.replace("\n}", "}").split("}\n") if part.strip()]
    return [document["tests"][0]["Results"][-1]["residency"] for document in documents]


def test_an_overlay_shows_what_its_upper_layer_has_in_memory(build, disk):
    require_mount("overlay")
    warm, evicted, again = overlay_reads(build, disk, ON_OVERLAY % "")
    assert [r["fraction"] for r in (warm, evicted, again)] == [1, 0, 1]  # cachestat says 0 each time
    assert {r["method"] for r in (warm, evicted, again)} == {"mincore"}
    assert not any(r["memoryBacked"] for r in (warm, evicted, again))


@pytest.mark.parametrize("hidden", [False, True], ids=["seen", "hidden"])
def test_an_overlay_whose_upper_layer_is_memory_is_memory(build, tmp_path, hidden):
    """Hidden: a container does not see the folder of its upper layer."""
    require_mount("overlay")
    before = "mkdir in; mount -t tmpfs tmpfs in; B=$PWD; cd in"
    hide = (
        "mkdir $B/again; mount --rbind $B/in $B/again; mount -t tmpfs tmpfs $B/in; cd $B/again"
        if hidden
        else ""
    )
    reads = overlay_reads(build, tmp_path, f"{before}; {ON_OVERLAY % hide}")
    assert [(r["memoryBacked"], r["fraction"]) for r in reads] == [(True, 1)] * 3
