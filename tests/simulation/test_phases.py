"""Workloads on topologies, each figure worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.inference.workload import KVCacheWorkload
from tiercel.simulation.phases import Phase, lacking, phases, simulated, unknown
from tiercel.site.model import Storage
from tiercel.study.workloads import DataWorkload, MetadataWorkload

LINK = {"stage": "client", "bandwidth": "10GB/s", "per_node": True}
GATEWAY = {"stage": "gateway", "label": "the gateways", "bandwidth": "5GB/s", "units": 6}
MEDIA = {"stage": "media", "label": "the disks", "bandwidth": "1GB/s", "units": 25}


def storage(*stages: dict[str, Any], medium: str = "network") -> Storage:
    return Storage.model_validate(
        {"type": "nfs", "mount": "/v", "scratch": "/v/x", "medium": medium, "topology": list(stages)}
    )


def data(operation: str = "write", **keys: Any) -> DataWorkload:
    given = {"operation": operation, "transfer_size": 10**6, "data_per_process": 10**9, **keys}
    return DataWorkload.model_validate(given)


def one(workload: DataWorkload, of: Storage, nodes: int, processes: int) -> Phase:
    (found,) = phases(workload, of, nodes, processes)
    return found


@pytest.mark.parametrize(
    ("nodes", "seconds", "full"),
    [
        (1, 4 / 10, "client"),  # 4 GB over the node's link of 10 GB/s
        (3, 12 / 25, "the disks"),  # links 30, gateways 30, disks 25
        (128, 512 / 25, "the disks"),
    ],
)
def test_the_narrowest_stage_sets_the_time(nodes: int, seconds: float, full: str) -> None:
    found = one(data(), storage(LINK, GATEWAY, MEDIA), nodes, 4)
    assert found.seconds == pytest.approx(seconds)
    assert (found.moved, found.bound_by) == (nodes * 4e9, full)


def test_uneven_gateways_make_the_run_as_slow_as_the_fuller_one() -> None:
    # Three nodes, two gateways of 5 GB/s: two nodes of 1 GB each share one of them: 2 / 5 s. By the sum of
    # both (10 GB/s for 3 GB) it would be 0.3 s.
    of = storage(LINK, {**GATEWAY, "units": 2, "spread": "nodes"})
    assert one(data(), of, 3, 1).seconds == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("spread", "seconds"),
    [
        ("stripes", 2 / 7),  # all of both: 5 and 2 GB/s
        ("nodes", 1 / 2),  # a node on each, and the one on the slower takes longest
    ],
)
def test_gateways_of_two_speeds(spread: str, seconds: float) -> None:
    of = storage(LINK, {**GATEWAY, "sizes": [1, 0.4], "units": 2, "spread": spread})
    assert one(data(), of, 2, 1).seconds == pytest.approx(seconds)


def test_a_process_alone_has_the_unit_that_it_goes_over() -> None:
    # 1,000 transfers of 1 MB, each waited for: 0.2 ms over the one server, 0.5 ms over the other, and 1 ms.
    servers = {"stage": "server", "bandwidth": "5GB/s", "sizes": [1, 0.4], "latency": "1ms"}
    found = one(data(direct=True), storage(LINK, {**servers, "spread": "processes"}), 1, 2)
    assert found.seconds == pytest.approx(1.5)


def test_writes_and_reads_go_their_own_ways() -> None:
    # Written to two fast units and read from many slow ones: flash of two kinds behind a server.
    buffer = {"stage": "media", "label": "buffer", "carries": "writes", "bandwidth": "2GB/s", "units": 2}
    shelf = {"stage": "media", "label": "shelf", "carries": "reads", "bandwidth": "1GB/s", "units": 8}
    of = storage(LINK, buffer, shelf)
    assert [(p.bound_by, p.seconds) for p in (one(data(), of, 1, 1), one(data("read"), of, 1, 1))] == [
        ("buffer", pytest.approx(1 / 4)), ("shelf", pytest.approx(1 / 8)),
    ]  # fmt: skip
    assert "media" not in " ".join(unknown(of, data("read"), 1, 1))
    only = storage(LINK, buffer)
    assert "media" in unknown(only, data("read"), 1, 1) and "media" not in unknown(only, data(), 1, 1)


def test_a_process_that_waits_for_each_operation() -> None:
    # 1 MB takes 1 ms to answer and 0.1 ms to pass (10 GB/s): 1,000 operations take 1.1 s. Two at once: half.
    slow = storage({**LINK, "latency": "1ms"}, {**MEDIA, "units": 100})
    assert one(data(direct=True), slow, 1, 1).seconds == pytest.approx(1.1)
    assert one(data(direct=True, queue_depth=2), slow, 1, 1).seconds == pytest.approx(0.55)
    assert one(data(fsync="write"), slow, 1, 1).seconds == pytest.approx(1.1)
    assert one(data("read", pattern="random"), slow, 1, 1).seconds == pytest.approx(1.1)
    # Written later, read ahead: only the first of them is waited for.
    assert one(data(), slow, 1, 1).seconds == pytest.approx(0.1 + 0.001)
    found = one(data(direct=True), slow, 1, 1)
    assert found.waited == pytest.approx(0.0011)
    assert "waits" in found.bound_by and found.figure == "latency"
    # Alone it moves its bytes for ten times as long as it waits: no shorter latency would bring much.
    slower = storage({**LINK, "bandwidth": "0.1GB/s", "latency": "1ms"}, {**MEDIA, "units": 100})
    assert one(data(direct=True), slower, 1, 1).figure == "bandwidth"


def test_few_operations_take_no_more_and_no_less_than_they_wait() -> None:
    far = storage({**LINK, "latency": "100ms"}, {**MEDIA, "units": 100})
    # One of 1 MB: 100 ms and 0.1 ms; no queue makes it shorter. Two, of which two may be under way: as long.
    assert one(data(direct=True, data_per_process=10**6), far, 1, 1).seconds == pytest.approx(0.1001)
    alone = one(data(direct=True, data_per_process=10**6, queue_depth=64), far, 1, 1)
    assert (alone.seconds, alone.waited) == (pytest.approx(0.1001), pytest.approx(0.1001))
    both = one(data(direct=True, data_per_process=2 * 10**6, queue_depth=64), far, 1, 1)
    assert both.seconds == pytest.approx(0.1001)


def test_random_reads_seek_and_reads_in_order_do_not() -> None:
    # 4 processes x 1,000 reads of 1 MB; 50 seeks a second on each of 25 disks, 25 GB/s of disks.
    disks = storage(LINK, {**MEDIA, "random_operations": 50})
    assert one(data("read", pattern="random"), disks, 4, 1).seconds == pytest.approx(4000 / 1250)
    assert one(data("read"), disks, 4, 1).seconds == pytest.approx(4 / 25)
    assert one(data("read", direct=True), disks, 4, 1).seconds == pytest.approx(4 / 25)


def test_what_lies_in_the_nodes_memory_is_read_from_there() -> None:
    memory = {
        "stage": "client",
        "label": "memory",
        "bandwidth": "20GB/s",
        "per_node": True,
        "cache": 8 * 10**9,
    }
    of = storage(memory, {**LINK, "label": "link"}, MEDIA)
    warm = data("read", access="RAW", reorder="none")
    found = one(warm, of, 2, 4)  # 4 GB on each node at 20 GB/s
    assert (found.seconds, found.bound_by) == (pytest.approx(0.2), "memory")
    assert lacking(storage(memory), warm, 2, 4) == ()  # nothing else is asked
    assert "cache of client" in lacking(storage(LINK, MEDIA), warm, 2, 4)[0]
    # 16 GB on each node: nothing of use is left in order; half of it in random order, so that half passes the
    # links of 10 GB/s and the disks of 25.
    assert one(data("read", access="RAW", reorder="none", data_per_process=4 * 10**9), of, 2, 4).seconds == (
        pytest.approx(32 / 20)
    )
    half = data("read", access="RAW", reorder="none", data_per_process=4 * 10**9, pattern="random")
    assert one(half, of, 2, 4).seconds == pytest.approx(32 / 40)
    # Written without a sync: 8 of 16 GB of each node have left it by the end, over 10 GB/s.
    assert one(data(data_per_process=4 * 10**9), of, 1, 4).seconds == pytest.approx(0.8)
    assert one(data(data_per_process=4 * 10**9, fsync="phase"), of, 1, 4).seconds == pytest.approx(1.6)


def test_servers_of_metadata_carry_no_data() -> None:
    meta = {"stage": "server", "label": "mds", "carries": "metadata", "bandwidth": "1MB/s", "metadata": 100}
    of = storage(LINK, meta, MEDIA)
    assert one(data(), of, 1, 4).seconds == pytest.approx(0.4)
    workload = MetadataWorkload(operation="metadata", items_per_process=25, directories=False,
                                phases=["create"], write_bytes=10_000)  # fmt: skip
    (found,) = phases(workload, of, 1, 4)
    assert (found.seconds, found.bound_by) == (pytest.approx(1), "mds (metadata)")


def test_operations_bound_small_transfers() -> None:
    # 4 processes x 1,000 operations of 1 MB on servers that begin 2 x 500 a second: 4 s.
    server = {"stage": "server", "label": "servers", "bandwidth": "100GB/s", "operations": 500, "units": 2}
    found = one(data(direct=True), storage(LINK, server), 1, 4)
    assert (found.seconds, found.bound_by) == (pytest.approx(4), "servers (operations)")
    # The page cache makes few of many: 4 GB over the link of 10 GB/s.
    assert one(data(), storage(LINK, server), 1, 4).seconds == pytest.approx(0.4)


def test_the_time_limit_cuts_and_wear_out_levels() -> None:
    # As above: on gateway 0 two nodes of 2.5 GB/s each, on gateway 1 one of 5 GB/s. After 0.1 s: 0.25 GB,
    # 0.25 and 0.5.
    of = storage(LINK, {**GATEWAY, "units": 2, "spread": "nodes"})
    cut = one(data(stonewall="0.1s"), of, 3, 1)
    assert (cut.moved, cut.seconds) == (pytest.approx(1e9), pytest.approx(0.1))
    # All go on to 0.5 GB: the two on gateway 0 take 1 GB / 5 GB/s.
    worn = one(data(stonewall="0.1s", wear_out=True), of, 3, 1)
    assert (worn.moved, worn.seconds) == (pytest.approx(1.5e9), pytest.approx(0.2))


def test_metadata_goes_by_operations_and_by_what_files_hold() -> None:
    server = {
        "stage": "server",
        "bandwidth": "1MB/s",
        "metadata": {"create": 1000, "stat": 4000, "remove": 500},
    }
    workload = MetadataWorkload(
        operation="metadata", items_per_process=100, directories=False, phases=["create", "stat", "remove"],
        write_bytes=10_000,
    )  # fmt: skip
    found = phases(workload, storage(server), 2, 5)
    # 1,000 files of 10 kB at 1 MB/s take 10 s, longer than the 1 s of their creates; then 1,000 / 4,000 and
    # 1,000 / 500.
    assert [(p.operation, pytest.approx(p.seconds)) for p in found] == [
        ("file-create", 10), ("file-stat", 0.25), ("file-remove", 2),
    ]  # fmt: skip
    assert found[0].bound_by == "server"


def test_a_time_limit_of_creates_leaves_fewer_for_the_others() -> None:
    server = {"stage": "server", "metadata": 1000}
    workload = MetadataWorkload(
        operation="metadata", items_per_process=10**6, directories=False, phases=["create", "remove"],
        stonewall=2,
    )  # fmt: skip
    create, remove = phases(workload, storage(server), 1, 4)
    assert (create.moved, create.asked) == (2000, 4_000_000)
    assert (remove.moved, remove.seconds) == (2000, pytest.approx(2))


def test_what_is_lacking_is_named_and_nothing_is_made_up() -> None:
    links = storage(LINK, {"stage": "server", "label": "16 servers", "units": 16})
    needed = ("bandwidth of server (16 servers)", "bandwidth of gateway", "bandwidth of fabric",
              "bandwidth of media")  # fmt: skip
    assert lacking(links, data(), 1, 1) == needed
    with pytest.raises(ValueError, match="not known: bandwidth of server"):
        phases(data(), links, 1, 1)
    some = MetadataWorkload(operation="metadata", phases=["create", "stat"])
    server = {"stage": "server", "metadata": {"create": 5}}
    assert lacking(storage(server), some, 1, 1) == ("metadata operations per second (stat)",)
    assert (
        lacking(
            storage({"stage": "media", "bandwidth": "1GB/s", "per_node": True}, medium="disk"), data(), 1, 1
        )
        == ()
    )


def test_a_bound_by_some_stages_is_told_from_a_number() -> None:
    assert unknown(storage(LINK, GATEWAY), data(), 1, 1) == ("server", "fabric", "media")
    # Found from end to end, it stands for all of them.
    assert unknown(storage({**MEDIA, "whole": True}), data(), 1, 1) == ()


def test_where_nobody_says_how_long_an_operation_takes_it_is_a_bound() -> None:
    known = {"bandwidth": "1GB/s", "operations": 1000}
    quick, far = (
        {**known, "stage": s, **keys} for s, keys in (("server", {}), ("media", {"latency": "1ms"}))
    )
    rest = [{"stage": kind, "absent": True} for kind in ("gateway", "fabric")]
    of = storage({**LINK, **known}, rest[0], quick, rest[1], {**quick, "stage": "media"})
    waited = [data(direct=True), data(fsync="write"), data("read", pattern="random")]
    assert [unknown(of, workload, 1, 1) for workload in (*waited, data(), data("read"))] == [
        ("latency",), ("latency",), ("latency",), (), (),
    ]  # fmt: skip
    of = storage({**LINK, **known}, rest[0], quick, rest[1], far)
    assert [unknown(of, workload, 1, 1) for workload in waited] == [()] * 3
    files = MetadataWorkload(operation="metadata", phases=["create", "stat"])
    some = {**quick, "metadata_latency": {"create": "1ms"}}
    assert unknown(storage(some), files, 1, 1) == ("latency (stat)",)


def test_a_process_that_keeps_one_of_many_disks_busy_is_a_bound_without_their_latency() -> None:
    # One read at a time goes to one of 25 disks; what it takes there nobody says. 25 at a time keep all busy.
    disks = {**MEDIA, "random_operations": 100}
    of = storage({**LINK, "latency": "50us"}, disks, medium="disk")
    read = data("read", pattern="random")
    assert unknown(of, read, 1, 4) == ("latency of media (the disks)",)
    assert unknown(of, read, 1, 25) == unknown(of, data("read"), 1, 4) == ()
    told = storage({**LINK, "latency": "50us"}, {**disks, "latency": "10ms"}, medium="disk")
    assert unknown(told, read, 1, 4) == ()
    assert one(read, told, 1, 1).seconds == pytest.approx(1000 * (0.01005 + 1e6 / 10e9), rel=1e-3)


def test_what_is_no_data_is_refused() -> None:
    assert simulated(data("read", access="RAW")) is None
    assert "only data and metadata are" in (simulated(KVCacheWorkload.model_construct(operation="kv")) or "")
