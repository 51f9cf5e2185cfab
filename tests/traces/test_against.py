"""Two traces side by side: every difference here can be reckoned from the events above it."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.traces.conftest import Event, call, compute, write
from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.against import Comparison, compare
from tiercel.traces.against.compare import ONE_RUN_EACH, Difference, largest
from tiercel.traces.against.matching import match
from tiercel.traces.against.quantities import QUANTITIES
from tiercel.traces.against.words import matched_words, verdict
from tiercel.traces.page import pair_page

Maker = Callable[[list[Event]], IOFrame]
LOGS = Path(__file__).parents[1] / "data" / "traces" / "darshan"
needs_darshan = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None, reason="the darshan package is not installed"
)
MIB = 1 << 20


def by_name(comparison: Comparison) -> dict[str, Difference]:
    return {d.quantity.name: d for d in [*comparison.differences, *comparison.same]}


def slow(folder: str = "/disk/run") -> list[Event]:
    """Two reads of 1 MiB, 1 s each; one write of 2 MiB, 4 s; an fsync of 3 s: 9 s."""
    return [
        call("read", 0, 1_000_000, fname=f"{folder}/in", ret=MIB),
        call("read", 1_000_000, 1_000_000, fname=f"{folder}/in", ret=MIB),
        call("write", 2_000_000, 4_000_000, fname=f"{folder}/out", ret=2 * MIB),
        call("fsync", 6_000_000, 3_000_000, fname=f"{folder}/out", ret=0),
    ]


def fast(folder: str = "/memory/deep/run") -> list[Event]:
    """The same calls without the fsync: reads 0.5 s each, write 1 s: 2 s."""
    return [
        call("read", 0, 500_000, fname=f"{folder}/in", ret=MIB),
        call("read", 500_000, 500_000, fname=f"{folder}/in", ret=MIB),
        call("write", 1_000_000, 1_000_000, fname=f"{folder}/out", ret=2 * MIB),
    ]


def test_differences_by_hand(frame_of: Maker) -> None:
    found = compare(frame_of(slow()), frame_of(fast()))
    d = by_name(found)
    assert (d["job_time"].a, d["job_time"].b, d["job_time"].size) == (9.0, 2.0, -7.0)
    assert (d["read_time"].a, d["read_time"].b, d["read_time"].ratio) == pytest.approx((2.0, 1.0, 0.5))
    assert d["write_time"].size == pytest.approx(-3.0)
    assert (d["sync_time"].a, d["sync_time"].b) == pytest.approx((3.0, 0.0))
    assert (d["sync_calls"].a, d["sync_calls"].b, d["sync_calls"].ratio) == (1.0, 0.0, 0.0)
    assert d["read_bytes"] in found.same and d["read_bytes"].a == 2 * MIB
    assert (d["read_bandwidth"].a, d["read_bandwidth"].b) == pytest.approx((MIB, 2 * MIB))
    assert (d["write_size"].a, d["write_small"].a) == (2 * MIB, 0.0)
    # 4 MiB in 9 s of I/O, and in 2 s.
    assert (d["system"].a, d["system"].b) == pytest.approx((4 * MIB / 9, 2 * MIB))
    assert "metadata_share" in d and "hidden" not in d


def test_the_largest_time_difference_is_first(frame_of: Maker) -> None:
    found = compare(frame_of(slow()), frame_of(fast()))
    times = [abs(d.size) for d in found.differences if d.quantity.is_time]
    assert times == sorted(times, reverse=True) and found.differences[0].quantity.name in {
        "job_time",
        "io_wall",
    }
    kinds = [d.quantity.is_time for d in found.differences]
    assert kinds == sorted(kinds, reverse=True)
    first = largest(found.differences)
    assert first is not None
    assert first.sentence == "job time: 9 s in A, 2 s in B, 7 s less, 0.222 times A's"
    assert verdict(found).startswith("Job time: 9 s in A, 2 s in B, 7 s less")


def test_the_same_trace_twice(frame_of: Maker) -> None:
    frame = frame_of(slow())
    found = compare(frame, frame)
    assert not found.differences and found.same and not found.incomparable
    assert all(f.fate == "stayed" for f in found.found)
    assert verdict(found).startswith("No time differs")
    assert found.files["io_time_change"].abs().max() == 0


def test_nothing_is_called_significant(frame_of: Maker) -> None:
    found = compare(frame_of(slow()), frame_of(fast()))
    assert found.notes[0] == ONE_RUN_EACH
    seen = html.unescape(re.sub(r"<[^>]+>", " ", pair_page(found)))
    assert ONE_RUN_EACH in seen and seen.count("significant") == seen.count("called significant")


def test_what_one_trace_alone_says_is_not_compared(frame_of: Maker) -> None:
    found = compare(frame_of(slow()), frame_of([*fast(), compute(0, 500_000)]))
    silent = dict(found.incomparable)
    assert silent["I/O hidden behind computation"] == "A does not say"
    assert "application throughput" in silent and "hidden" not in by_name(found)


def test_overlap_is_compared_where_both_compute(frame_of: Maker) -> None:
    """A hides 1 of 9 s, B 1 of 2 s."""
    found = compare(frame_of([*slow(), compute(0, 1_000_000)]), frame_of([*fast(), compute(0, 1_000_000)]))
    d = by_name(found)
    assert (d["hidden"].a, d["hidden"].b) == pytest.approx((1 / 9, 1 / 2))
    assert d["hidden"].quantity.show_difference(d["hidden"].size) == "+38.9 points"
    assert (d["felt"].a, d["felt"].b) == pytest.approx((8.0, 1.0))


def test_findings_gone_new_and_stayed(frame_of: Maker) -> None:
    """Small reads in both, small writes in A alone, syncs in B alone."""

    def small(kind: str, start: int) -> list[Event]:
        return [call(kind, start + n * 2000, 1000, fname=f"/d/{kind}", ret=100) for n in range(200)]

    syncs = [call("fsync", 2_000_000 + n * 3000, 2000, fname="/d/write", ret=0) for n in range(50)]
    large = [call("write", 3_000_000 + n * 3000, 100, fname="/d/write", ret=2 * MIB) for n in range(50)]
    before = [*small("read", 0), *small("write", 1_000_000)]
    found = compare(frame_of(before), frame_of([*small("read", 0), *large, *syncs]))
    fates = {(f.fate, (f.a or f.b).rule) for f in found.found if f.a or f.b}  # type: ignore[union-attr]
    assert ("gone", "small-transfers") in fates and ("stayed", "small-transfers") in fates
    assert ("new", "fsync-storm") in fates
    [gone] = [f for f in found.found if f.fate == "gone" and f.a and f.a.rule == "small-transfers"]
    assert gone.a is not None and "writes" in gone.a.sentence


def test_files_are_matched_by_path_folder_and_end() -> None:
    a = ["/etc/conf", "/disk/run/in/x.h5", "/disk/run/out/y.h5", "/disk/run/a1"]
    b = ["/etc/conf", "/dev/shm/j/in/x.h5", "/dev/shm/j/out/y.h5", "/dev/shm/j/b1"]
    m = match(a, b)
    assert (m.same_path, m.below_folder, m.by_end) == (1, 2, 0)
    assert m.folders == ("/disk/run/", "/dev/shm/j/")
    assert m.only_a == ["/disk/run/a1"] and m.only_b == ["/dev/shm/j/b1"]
    # A library elsewhere makes the common folder "/": most names still lie below the same ones.
    m = match([*a, "/usr/lib/liba.so"], [*b, "/opt/libb.so"])
    assert (m.same_path, m.below_folder, m.by_end) == (1, 2, 0)
    assert m.folders == ("/disk/run/", "/dev/shm/j/") and m.only_a == ["/disk/run/a1", "/usr/lib/liba.so"]
    assert ("/disk/run/in/x.h5", "/dev/shm/j/in/x.h5") in m.pairs


def test_an_end_that_two_files_have_matches_none() -> None:
    m = match(["/a/1/data", "/a/2/data", "/z"], ["/b/3/data", "/q/q"])
    assert m.pairs == [] and len(m.only_a) == 3
    assert match([], []).pairs == []


def test_each_file_has_one_partner() -> None:
    m = match(["/p/a/f", "/p/b/f", "/q/g"], ["/r/a/f", "/s/g"])
    assert dict(m.pairs) == {"/p/a/f": "/r/a/f", "/q/g": "/s/g"}


def test_files_that_changed_most_come_first(frame_of: Maker) -> None:
    """`out` takes 7 s in A (write and fsync), 1 s in B; `in` 2 s and 1 s."""
    found = compare(frame_of(slow()), frame_of(fast()))
    assert found.files["file"].tolist() == ["/disk/run/out", "/disk/run/in"]
    assert found.files["io_time_change"].tolist() == pytest.approx([-6.0, -1.0])
    assert found.files["bytes_b"].tolist() == [2 * MIB, 2 * MIB]
    said = "2 files of A's 2 and B's 2 matched (2 by their name below /disk/run/ and /memory/deep/run/)."
    assert matched_words(found) == said


def test_layers_of_both(frame_of: Maker) -> None:
    stdio = [call("fwrite", 0, 1000, cat="STDIO", fname="/d/f", ret=10, size=1)]
    layers = compare(frame_of(slow()), frame_of([*fast(), *stdio])).layers.set_index("layer")
    assert layers.loc["posix", "calls_a"] == 4 and layers.loc["posix", "calls_b"] == 3
    assert layers.loc["stdio", "calls_b"] == 1 and layers["calls_a"].isna()["stdio"]
    assert layers.loc["posix", "sync_s_a"] == pytest.approx(3.0)


def test_ranks_and_tracers_that_differ_are_said(frame_of: Maker, tmp_path: Path) -> None:
    four = [call("read", 0, 100, pid=10 + n, fname="/d/f", ret=1) for n in range(4)]
    assert any("A has 4 ranks, B 1" in note for note in compare(frame_of(four), frame_of(fast())).notes)
    frame_of(fast()).to_parquet(tmp_path / "b.parquet")
    notes = compare(frame_of(slow()), open_trace(tmp_path / "b.parquet")).notes
    assert not any("was traced by" in note for note in notes)  # a converted trace says who traced it
    pq.write_table(
        pq.read_table(tmp_path / "b.parquet").replace_schema_metadata(None), tmp_path / "c.parquet"
    )
    notes = compare(frame_of(slow()), open_trace(tmp_path / "c.parquet")).notes
    assert any("A was traced by dftracer, B by parquet" in note for note in notes)


@needs_darshan
def test_counters_beside_a_log_with_dxt_are_compared_as_counters() -> None:
    """DXT holds no opens; the counters beside it do. What goes to <STDOUT> is no file's."""
    found = compare(
        open_trace(LOGS / "posix-counters.darshan"), open_trace(LOGS / "posix-dxt.darshan")
    )  # fmt: skip
    d = by_name(found)
    assert found.a.counts and found.b.counts and not found.incomparable
    moved = [side.frame.metadata["counter_totals"] for side in (found.a, found.b)]
    for kind in ("read", "write"):
        calls = [m["POSIX"][f"POSIX_{kind.upper()}S"] for m in moved]
        assert [d[f"{kind}_calls"].a, d[f"{kind}_calls"].b] == calls
    assert "metadata_time" in d
    assert any("both are compared by their counters" in note for note in found.notes)


@needs_darshan
def test_counters_beside_events_alone_say_what_cannot_be_compared(frame_of: Maker) -> None:
    found = compare(open_trace(LOGS / "posix-counters.darshan"), frame_of(slow()))
    silent = dict(found.incomparable)
    assert silent["time in syncs"] == "A does not say"
    assert silent["time in writes"] == "counters hold syncs as writing"
    # STDIO's calls are in A's counters, and not in what B's layer is compared with.
    totals = found.a.frame.metadata["counter_totals"]["POSIX"]
    assert by_name(found)["write_calls"].a == totals["POSIX_WRITES"]
    assert any("what both can say of posix is compared" in note for note in found.notes)


def test_empty_traces(frame_of: Maker) -> None:
    nothing = frame_of([compute(0, 1000)])
    found = compare(nothing, nothing)
    assert "No time differs" in verdict(found)
    page = pair_page(found)
    assert "0 files of A&#39;s 0 and B&#39;s 0 matched." in page
    one = compare(nothing, frame_of([call("read", 0, 5, fname="/d/f", ret=1)]))
    assert by_name(one)["read_calls"].b == 1.0


def test_hostile_names_stay_words(frame_of: Maker) -> None:
    names = ["/d/<script>alert(1)</script>", '/d/"q" \'&', f"/d/{'y' * 1000}", "/d/\u202eline\nbreak"]
    events = [call("write", n * 10, 5, fname=name, ret=10) for n, name in enumerate(names)]
    page = pair_page(compare(frame_of(events), frame_of(events)))
    assert "<script>alert" not in page and "y" * 400 not in page and "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_words_of_differences() -> None:
    quantity = {q.name: q for q in QUANTITIES}
    assert Difference(quantity["sync_time"], 1.0, 0.001).sentence.endswith("999 ms less, 1/1 000 of A's")
    assert Difference(quantity["read_calls"], 0, 5).sentence == "reads: 0 in A, 5 in B, 5 more"
    assert Difference(quantity["hidden"], 0.5, 0.25).sentence.endswith("25 points less")
    assert Difference(quantity["files"], 3, 3).sentence == "files: 3 in both"


def test_the_command(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.pfw", slow()), write(tmp_path / "b.pfw", fast())
    run = CliRunner()
    told = run.invoke(app, ["trace", "compare", str(a), str(b), "-o", str(tmp_path / "p.html")])
    assert told.exit_code == 0, told.output
    said = " ".join(told.stdout.split())
    assert "Job time: 9 s in A, 2 s in B, 7 s less, 0.222 times A's" in said
    assert "2 files of A's 2 and B's 2 matched" in said and said.endswith(str(tmp_path / "p.html"))
    assert (tmp_path / "p.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    plain = run.invoke(app, ["trace", "compare", str(a), str(b), "--json"])
    answer: dict[str, Any] = json.loads(plain.stdout)
    assert answer["differences"][0]["difference"] == pytest.approx(-7.0)
    assert answer["files"]["matched"] == 2 and answer["notes"][0] == ONE_RUN_EACH
    for arguments, why in (
        ([str(a), str(tmp_path / "none")], "none"),
        ([str(a), str(b), "-o", "p.pdf"], "is an .html file"),
        ([str(a), str(b), "--api", "posx"], "did you mean posix"),
    ):
        refused = run.invoke(app, ["trace", "compare", *arguments])
        assert isinstance(refused.exception, UserError) and why in str(refused.exception)
