"""`tiercel cache bench` on data that are too small to tell anything: what it compares, and how it says it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiercel.caching.bench import MIB, PLAIN_TURNS, TURNS, Bench, Reader, Turn, _median_ratio
from tiercel.caching.kernel import make_samples
from tiercel.errors import UserError

from .conftest import needs_connector

pytestmark = needs_connector


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    run = Bench(True, None, 400 * MIB, tmp_path)
    run.samples, run.repetitions = 64, {"checkpoint": 1, "stream": 2}
    yield run
    run.close()


def test_readers_take_turns_and_the_copy_is_read_in_later_epochs(bench: Bench) -> None:
    bench.make_samples(bench.base)
    time.sleep(2.2)  # else the connector takes the file for one that still changes
    found = bench.take_turns(bench.lay_out(), shuffled=True, seed=1, page_cache=False)
    assert [len(turn) for turn in found["cached"]] == [1] + [bench.epochs] * TURNS
    assert [len(turn) for turn in found["plain"]] == [1] * (1 + PLAIN_TURNS)
    assert all(e["bytes"] == 8 * MIB and e["cpu"] > 0 for turns in found.values() for t in turns for e in t)
    # The base storage is limited to 400 MiB a second; what is faster came from the node.
    assert all(turn.bandwidth < 440 * MIB for turn in found["plain"])
    assert found["cached"][0].bandwidth < 440 * MIB
    # The best of them: on a busy machine a turn may wait for longer than the base storage would make it.
    assert max(turn.bandwidth for turn in found["cached"][1:]) > 440 * MIB
    copies = list(bench.node.glob("cache/*/read/*/data"))
    assert len(copies) == 1 and copies[0].stat().st_blocks * 512 >= 8 * MIB


def test_a_row_has_medians_within_their_intervals(bench: Bench) -> None:
    bench.make_samples(bench.base)
    row = bench.stream(shuffled=False, page_cache=True)
    assert [len(row[who]) for who in ("plain", "cached", "node_local")] == [4, 4, 4]
    for name in ("first_epoch_of_plain", "later_of_plain", "later_of_node_local", "noise"):
        low, high = row[f"{name}_interval"]
        assert low <= row[name] <= high


def test_ratios_are_of_turns_beside_each_other() -> None:
    """A machine that is slowed down for a while slows both."""

    def turn(seconds: float) -> Turn:
        return Turn([{"seconds": seconds, "cpu": 1.0, "bytes": 12.0}])

    slow, fast = [turn(s) for s in (2, 4, 12)], [turn(s) for s in (1, 2, 6)]
    assert _median_ratio(fast, slow, lambda t: t.bandwidth) == 2
    assert _median_ratio(fast[:2], slow, lambda t: t.bandwidth) == 2  # one had fewer turns


def test_a_program_that_fails_is_named_with_what_it_said(bench: Bench, tmp_path: Path) -> None:
    make_samples(tmp_path / "samples.h5", 16, 16)
    spec = {"kernel": "turns", "path": str(tmp_path / "none.h5"), "batch": 4, "shuffled": False, "seed": 0}
    said = pytest.raises(UserError, match=r"failed \(plain\).*none\.h5")
    with Reader("plain", spec, bench.environment("plain")) as reader, said:
        reader.answer()
