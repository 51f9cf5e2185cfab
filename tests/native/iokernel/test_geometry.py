"""Which byte lands where. Offsets are those of IOR, counted by hand in the comments."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies

K = 1024


def test_shared_file_holds_every_segment_of_every_task(iokernel):
    run = iokernel.good("-n 3 -w -k -t 4k -b 16k -s 2 -o f")
    # 2 segments x 3 tasks x 16 KiB = 96 KiB
    assert iokernel.path("f").stat().st_size == 96 * K
    result = run.results[0]
    assert result["bytesMoved"] == result["bytesExpected"] == result["fileBytesAfter"] == 96 * K
    assert result["operations"] == 24  # 96 KiB / 4 KiB


def test_file_per_process_holds_the_segments_of_one_task(iokernel):
    iokernel.good("-n 3 -w -k -F -t 4k -b 16k -s 2 -o f")
    # 2 segments x 16 KiB each
    assert [iokernel.path(f"f.{task:08d}").stat().st_size for task in range(3)] == [32 * K] * 3


def test_blocks_of_a_segment_lie_in_the_order_of_the_tasks(iokernel):
    # With 3 operations per task only the first 3 of 4 transfers of each block of segment 0 are written:
    # task i covers [16i, 16i + 12) KiB, and the 4 KiB that follow stay a hole of zeros (but for the last
    # task, where the file ends).
    iokernel.good("-n 3 -w -k -t 4k -b 16k -s 2 -o f -O stoneWallingWearOutIterations=3")
    data = iokernel.path("f").read_bytes()
    assert len(data) == 44 * K  # 2 x 16 + 12
    pieces = [any(data[at : at + 4 * K]) for at in range(0, len(data), 4 * K)]
    assert pieces == [True, True, True, False, True, True, True, False, True, True, True]


def test_the_second_segment_begins_after_the_blocks_of_all_tasks(iokernel):
    # 5 operations: 4 fill the block of segment 0, the fifth is the first of segment 1, at 3 x 16 KiB.
    iokernel.good("-n 3 -w -k -t 4k -b 16k -s 2 -o f -O stoneWallingWearOutIterations=5")
    data = iokernel.path("f").read_bytes()
    written = [at // K for at in range(0, len(data), 4 * K) if any(data[at : at + 4 * K])]
    assert written == [*range(0, 48, 4), 48, 64, 80]


def test_unique_directories_hold_one_file_each_and_go_with_it(iokernel):
    shape = "-n 2 -F -u -t 4k -b 8k -o f"
    iokernel.good(shape, "-w -k")
    assert sorted(p.relative_to(iokernel.directory).as_posix() for p in iokernel.directory.rglob("f.*")) == [
        "0/f.00000000",
        "1/f.00000001",
    ]
    iokernel.good(shape, "-r")  # without -k the data files go; the directories are not this run's
    assert sorted(p.name for p in iokernel.directory.iterdir()) == ["0", "1"]
    iokernel.path("0").rmdir()
    iokernel.path("1").rmdir()
    iokernel.good(shape, "-w")
    assert list(iokernel.directory.iterdir()) == []


SHAPES = strategies.fixed_dictionaries(
    {
        "tasks": strategies.integers(1, 4),
        "transfer": strategies.sampled_from([8, 24, 4096, 65536]),
        "per_block": strategies.integers(2, 6),
        "segments": strategies.integers(1, 3),
        "random": strategies.booleans(),
        "own": strategies.booleans(),
        "depth": strategies.sampled_from([1, 3]),
        "seed": strategies.one_of(strategies.none(), strategies.integers(0, 2**31 - 1)),
    }
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=SHAPES)
def test_every_byte_is_written_once_and_read_back(iokernel, shape):
    # The file is filled with a wrong pattern first; reading the whole file in order with the checker proves
    # that each word was overwritten with what belongs at its offset. Equal counts then leave no room for a
    # second write.
    if shape["depth"] > 1 and not iokernel("--capabilities").document["io_uring"]:
        shape = {**shape, "depth": 1}
    block = shape["transfer"] * shape["per_block"]
    common = [
        "-n",
        shape["tasks"],
        "-t",
        shape["transfer"],
        "-b",
        block,
        "-s",
        shape["segments"],
        "-o f",
        *(["-F"] if shape["own"] else []),
        "--queue-depth",
        shape["depth"],
    ]
    order = [
        *(["-z"] if shape["random"] else []),
        *(["--random-offset-seed", shape["seed"]] if shape["random"] and shape["seed"] is not None else []),
    ]
    iokernel.good(*common, "-w -k -G 1")
    run = iokernel.good(*common, *order, "-w -k -E -G 2")
    total = block * shape["segments"] * shape["tasks"]
    assert run.results[0]["bytesMoved"] == total
    assert run.results[0]["operations"] == total // shape["transfer"]
    checked = iokernel.good(*common, "-r -R -G 2")
    assert checked.results[0]["verifyErrors"] == 0
    assert list(iokernel.directory.iterdir()) == []


def test_words_of_a_checkable_file_are_all_different(iokernel):
    iokernel.good("-w -k -t 4k -b 64k -G 3 -o f")
    data = iokernel.path("f").read_bytes()
    words = [data[at : at + 8] for at in range(0, len(data), 8)]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("change", ["other seed", "flipped bit", "other file", "shifted by a transfer"])
def test_wrong_data_are_found(iokernel, change):
    shape = "-n 2 -F -t 4k -b 16k -o f -k"
    iokernel.good(shape, "-w -G 5")
    first, second = iokernel.path("f.00000000"), iokernel.path("f.00000001")
    data = bytearray(first.read_bytes())
    if change == "flipped bit":
        data[5000] ^= 4
    elif change == "other file":
        data = second.read_bytes()
    elif change == "shifted by a transfer":
        data = data[4096:] + data[:4096]
    first.write_bytes(data)
    run = iokernel(shape, "-r -R -G", 6 if change == "other seed" else 5)
    assert run.status == 1
    errors = run.results[0]["verifyErrors"]
    # 4 transfers per file; a flipped bit spoils one of them, another seed those of both files
    assert errors == {"other seed": 8, "flipped bit": 1, "other file": 4, "shifted by a transfer": 4}[change]
    assert run.document["error"]["operation"] == "verify"
    assert run.document["error"]["rank"] == 0


def test_check_after_write_finds_nothing_wrong(iokernel):
    for extra in [(), ("-F -C --task-offset 1",), ("-z",)]:
        run = iokernel.good("-n 3 -w -W -t 4k -b 32k", *extra)
        assert [r["verifyErrors"] for r in run.results] == [0]


def test_direct_io_moves_the_same_bytes(iokernel, disk):
    shape = "-n 2 -t 4k -b 64k -o f -G 9"
    iokernel.good(shape, "-w -k --posix.odirect")
    run = iokernel.good(shape, "-r -R -B")
    assert run.results[0]["verifyErrors"] == 0 and run.parameters["odirect"] is True


def test_time_series_and_histogram_count_every_operation(iokernel):
    run = iokernel.good("-n 2 -t 4k -b 1m -s 4 --timeseries-interval 0.0001")
    for result in run.results:
        # 2 tasks x 4 segments x 256 transfers
        assert result["operations"] == sum(result["timeSeries"]["operations"]) == 2048
        assert result["bytesMoved"] == sum(result["timeSeries"]["bytes"])
        assert (
            result["transferLatency"]["count"]
            == sum(c for _, _, c in result["transferLatency"]["buckets"])
            == 2048
        )
        assert result["openLatency"]["count"] == result["closeLatency"]["count"] == 2
        assert len(result["timeSeries"]["bytes"]) <= 1000


def test_per_rank_stamps_agree_with_the_whole(iokernel):
    run = iokernel.good("-n 3 -t 4k -b 256k --per-rank -g -e")
    for result in run.results:
        ranks = result["perRank"]
        assert [r["rank"] for r in ranks] == [0, 1, 2]
        assert sum(r["bytes"] for r in ranks) == result["bytesMoved"]
        for first, last, name in [
            ("openStart", "openStop", "openTime"),
            ("transferStart", "transferStop", "wrRdTime"),
            ("closeStart", "closeStop", "closeTime"),
            ("openStart", "closeStop", "totalTime"),
        ]:
            span = max(r[last] for r in ranks) - min(r[first] for r in ranks)
            assert span == pytest.approx(result[name], abs=1e-9)
        assert result["bwMiB"] == pytest.approx(result["bytesMoved"] / 2**20 / result["totalTime"])
        assert result["iops"] == pytest.approx(result["operations"] / result["wrRdTime"])
        assert result["latency"] == pytest.approx(
            min((r["transferStop"] - r["transferStart"]) / r["operations"] for r in ranks)
        )


def test_summary_is_the_mean_of_the_repetitions(iokernel):
    run = iokernel.good("-t 4k -b 256k -i 3")
    for line in run.document["summary"]:
        bandwidths = [r["bwMiB"] for r in run.results if r["access"] == line["operation"]]
        assert len(bandwidths) == line["measured"] == 3
        assert line["bwMeanMIB"] == pytest.approx(sum(bandwidths) / 3)
        assert line["bwMaxMIB"] == pytest.approx(max(bandwidths))
        assert line["bwMinMIB"] == pytest.approx(min(bandwidths))
