"""The job page: its numbers against ones counted by hand, hostile names, and logs that hold little."""

from __future__ import annotations

import base64
import html
import importlib.util
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.traces.conftest import Event, call, compute, write
from tiercel.cli.main import app
from tiercel.errors import UserError
from tiercel.pages.secured import secured
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.ramps import Ramps
from tiercel.traces.findings import Finding
from tiercel.traces.page import job_page, write_job_page
from tiercel.traces.page.axes import clock, ticks
from tiercel.traces.page.charts import Series, heat, stack
from tiercel.traces.page.findings import ROWS, shown
from tiercel.traces.readers.darshan import _keep_counters

Maker = Callable[[list[Event]], IOFrame]
DATA = Path(__file__).parents[1] / "data" / "traces"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_darshan = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None, reason="the darshan package is not installed"
)
MIB = 1 << 20
HOSTILE = [
    "/p/<script>alert(1)</script>.h5", "/p/</iframe><img src=x onerror=alert(1)>", "/p/\"a\" 'b' & amp;",
    "/p/new\nline\ttab\x1b[31m", f"/p/{'x' * 1000}", "/p/\u202eback", "/p/{{ 7*7 }}{% raw %}",
]  # fmt: skip


def text_of(page: str) -> str:
    """Return what a reader sees of a page, on one line."""
    seen = re.sub(r"<(script|style)>.*?</\1>|<iframe.*?</iframe>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", seen)).split())


def two_ranks() -> list[Event]:
    """Rank 10 reads 4 MiB in 0..4 s and computes in 2..6 s; rank 20 writes 2 MiB in 4..8 s: 8 s in all."""
    return [
        call("read", 0, 4_000_000, fname="/d/a", ret=4 * MIB, offset=0),
        compute(2_000_000, 4_000_000),
        call("write", 4_000_000, 4_000_000, pid=20, fname="/d/b", ret=2 * MIB, offset=0),
    ]


def test_the_numbers_of_the_page(frame_of: Maker) -> None:
    """I/O in 0..8 s; 2 s of rank 10's are hidden: 6 s are felt; 6 MiB over these are 1 MiB/s."""
    seen = text_of(job_page(frame_of(two_ranks())))
    assert "At least one rank does I/O in 100 % of 8 s, and computation hides 25 % of that" in seen
    assert "2 s are hidden behind the ranks' own computation and 6 s are felt" in seen
    assert "application throughput (bytes over I/O that is felt) 1 MiB/s" in seen
    assert "4 MiB read and 2 MiB written; at most 1 MiB/s" in seen
    assert "2 files: 2 used by one rank alone." in seen
    # 8 of 2 x 8 s in data calls.
    assert "data 50 %" in seen


def test_sections_are_in_their_order(frame_of: Maker) -> None:
    page = job_page(frame_of(two_ranks()))
    anchors = re.findall(r'<section id="(\w+)"', page)
    assert anchors == [
        "findings", "overlap", "bandwidth", "heat", "sizes", "layers", "files", "ranks", "missing",
    ]  # fmt: skip


def test_what_ranks_do_over_time(frame_of: Maker) -> None:
    """Of two ranks: felt I/O 1 of 2 in 0..2 s; then rank 10's is hidden; then rank 20's is felt, beside 10's
    computation until 6 s."""
    table = frame_of(two_ranks()).overlap_over_time(bins=4)
    assert table.index.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert table["felt_io"].tolist() == pytest.approx([0.5, 0.0, 0.5, 0.5])
    assert table["hidden_io"].tolist() == pytest.approx([0.0, 0.5, 0.0, 0.0])
    assert table["compute"].tolist() == pytest.approx([0.0, 0.0, 0.5, 0.0])
    assert table.attrs["units"] == {"felt_io": "1", "hidden_io": "1", "compute": "1"}


def test_heat_by_rank_and_file(frame_of: Maker) -> None:
    frame = frame_of(two_ranks())
    by_rank = frame.heatmap(bins=4)
    assert by_rank.loc[0, "read_bytes"].tolist() == pytest.approx([2 * MIB, 2 * MIB, 0, 0])
    assert by_rank.loc[1, "write_bytes"].tolist() == pytest.approx([0, 0, MIB, MIB])
    assert by_rank.loc[1, "io_time"].tolist() == pytest.approx([0, 0, 2, 2])
    assert (by_rank.attrs["width"], by_rank.attrs["from"]) == (2.0, "events")
    assert by_rank.attrs["units"] == {"read_bytes": "B", "write_bytes": "B", "io_time": "s"}
    by_file = frame.heatmap(by="file", bins=2, top=1)
    assert by_file.index.tolist() == [("/d/a", 0.0), ("/d/a", 4.0)] and by_file.attrs["left_out"] == 1
    assert frame.heatmap(rank=1, bins=1).index.tolist() == [(1, 0.0)]
    for options, why in (({"by": "colour"}, "colour"), ({"bins": 0}, "bins"), ({"top": 0}, "top")):
        with pytest.raises(UserError, match=why):
            frame.heatmap(**options)


def test_names_with_quotes_are_asked_for_as_they_are(frame_of: Maker) -> None:
    name = '/d/o\'clock \\ "x"'
    table = frame_of([call("read", 0, 1000, fname=name, ret=10)]).heatmap(by="file", bins=1)
    assert table.index.tolist() == [(name, 0.0)] and table["read_bytes"].tolist() == [10.0]


def test_amounts_are_spread_evenly() -> None:
    """Row 0: 6 over 0..3 s; row 1: 4 at 1 s at once, 8 over 1..2 s. Nothing leaks into other rows."""
    ramps = Ramps(2, 3, 1.0)
    rows, times = np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0])
    ramps.add(rows, times, np.array([3.0, 0.0, 1.0]), np.array([6.0, 4.0, 8.0]))
    assert ramps.amounts().tolist() == [[2.0, 2.0, 2.0], [0.0, 12.0, 0.0]]


class Counted(IOFrame):
    """A frame of counters alone, with a HEATMAP made by the test."""

    def __len__(self) -> int:
        return 0

    def counters(self, module: str) -> pd.DataFrame | None:
        tables: dict[str, pd.DataFrame] = self.metadata["tables"]
        return tables.get(module)


def heat_rows(*rows: tuple[str, int, float, float, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["file", "rank", "start", "width", "read", "written"])


def counted(*rows: tuple[str, int, float, float, int, int]) -> Counted:
    return Counted((), metadata={"tables": {"HEATMAP": heat_rows(*rows)}})


def test_heat_from_counters() -> None:
    """Two ranks, four bins of 2 s; MPI-IO's bytes are POSIX's once more and do not count."""
    frame = counted(
        ("heatmap:POSIX", 0, 0.0, 2.0, 100, 0), ("heatmap:POSIX", 0, 6.0, 2.0, 0, 0),
        ("heatmap:POSIX", 1, 2.0, 2.0, 0, 50), ("heatmap:POSIX", 1, 6.0, 2.0, 0, 30),
        ("heatmap:STDIO", 1, 6.0, 2.0, 0, 5), ("heatmap:MPIIO", 1, 2.0, 2.0, 0, 50),
    )  # fmt: skip
    table = frame.heatmap(bins=4)
    assert table.loc[0, "read_bytes"].tolist() == [100, 0, 0, 0]
    assert table.loc[1, "write_bytes"].tolist() == [0, 50, 0, 35]
    assert table["io_time"].isna().all() and table.attrs["from"] == "counters" and table.attrs["width"] == 2.0
    # Bins are never finer than Darshan's, and wider ones hold their sums.
    assert len(frame.bandwidth_over_time(bins=100)) == 4
    over = frame.bandwidth_over_time(bins=2)
    assert over["read_bytes"].tolist() == [100, 0] and over["write_bytes"].tolist() == [50, 35]
    assert over["write_bandwidth"].tolist() == pytest.approx([12.5, 8.75])
    assert over.attrs["units"]["write_bandwidth"] == "B/s"
    assert frame.heatmap(bins=1, api="mpiio")["write_bytes"].tolist() == [50]
    with pytest.raises(UserError, match="no filter, hosts or files"):
        frame.heatmap(by="file")
    with pytest.raises(UserError, match="not each file"):
        frame.bandwidth_over_time(by="file")


def test_heat_reaches_to_the_end_of_the_job_and_shows_idle_ranks() -> None:
    """Darshan drops the bins after the last byte and the ranks without any: 9 s are five bins of 2 s."""
    frame = counted(("heatmap:POSIX", 1, 2.0, 2.0, 64, 0))
    frame = replace(frame, metadata={**frame.metadata, "ranks": 3}, _end=9.0)
    table = frame.heatmap(bins=100)
    assert table.index.unique("rank").tolist() == [0, 1, 2] and table.attrs["width"] == 2.0
    assert table.loc[1, "read_bytes"].tolist() == [0, 64, 0, 0, 0]
    assert table.loc[2, "read_bytes"].sum() == 0
    assert len(frame.bandwidth_over_time(bins=100)) == 5
    # The busiest first, and the idle ones are left out before it.
    assert frame.heatmap(top=1).index.unique("rank").tolist() == [1]
    # Where records were lost nobody knows that a rank was idle.
    partial = replace(frame, metadata={**frame.metadata, "partial": ["HEATMAP"]})
    assert partial.heatmap().index.unique("rank").tolist() == [1]


@needs_darshan
def test_the_page_of_counters_alone() -> None:
    """What counters cannot say is said to be missing; HEATMAP gives bandwidth and the heat map."""
    page = job_page(open_trace(DATA / "darshan" / "posix-counters.darshan"))
    seen = text_of(page)
    assert "of the time of the" in seen and "is in I/O calls" in seen
    assert "This section is missing: this log holds counters alone" in seen
    assert "Bytes moved, by rank" in seen and "From Darshan's HEATMAP counters" in seen
    assert "Computation, and so how much I/O it hides." in seen


@needs_darshan
def test_heatmap_is_read_from_logs() -> None:
    """Its bytes are those of the counters of POSIX and STDIO."""
    frame = open_trace(DATA / "darshan" / "posix-counters.darshan")
    assert "HEATMAP" in frame.metadata["modules"]
    told = frame.heatmap(bins=10)
    moved = frame.metadata["counter_totals"]
    for column, counter in (("read_bytes", "BYTES_READ"), ("write_bytes", "BYTES_WRITTEN")):
        whole = sum(moved.get(module, {}).get(f"{module}_{counter}", 0) for module in ("POSIX", "STDIO"))
        assert told[column].sum() == pytest.approx(whole)


def test_a_table_of_heat_is_no_record_of_counters(tmp_path: Path) -> None:
    """What the log's sentence counts are records of files."""

    class Keeper:
        kept: dict[str, Any]

        def __init__(self) -> None:
            self.kept = {}

        def keep(self, name: str, table: pa.Table) -> None:
            self.kept[name] = len(table)

    for name, rows in (("POSIX", 2), ("HEATMAP", 5)):
        table = pa.table({"file": ["/f"] * rows, "rank": [0] * rows})
        path = str(tmp_path / f"{name}.counters")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    keeper: Any = Keeper()
    assert _keep_counters(tmp_path, keeper) == 2 and keeper.kept == {"POSIX": 2, "HEATMAP": 5}


def test_empty_traces_and_single_calls(frame_of: Maker) -> None:
    single = text_of(job_page(frame_of([call("read", 0, 0, fname="/d/a", ret=1)])))
    assert "1 event " in single and "No I/O call in this trace takes any time" in single
    calm = text_of(job_page(frame_of([compute(0, 1000)])))
    assert "The trace holds no I/O call." in calm and "No call names a file." in calm
    nothing = job_page(frame_of([compute(0, 1000)]).select(filter="kind = 'read'"))
    assert "Nothing to check: the trace has no events and no counters." in text_of(nothing)
    assert "Nothing to check: the trace has no I/O calls." in calm


def test_hostile_names_stay_words(frame_of: Maker, tmp_path: Path) -> None:
    events = [
        call("read", 1000 * n, 900, fname=name, ret=100, offset=0) for n, name in enumerate(HOSTILE * 20)
    ]
    path = write_job_page(frame_of(events), tmp_path / "page.html")
    page = path.read_text(encoding="utf-8")
    assert "<script>alert" not in page and "<img src=x" not in page and "x" * 400 not in page
    assert "\x1b" not in page and "\u202e" not in text_of(page)
    seen = text_of(page)
    assert "<script>alert(1)</script>.h5" in seen and "{{ 7*7 }}{% raw %}" in seen
    # The frame's own page is closed by its own end alone, and its data by its own script element.
    inner = html.unescape(re.findall(r'srcdoc="([^"]*)"', page)[0])
    assert inner.rstrip().endswith("</html>") and inner.count("</script>") == 2


def test_nothing_comes_from_elsewhere(frame_of: Maker) -> None:
    page = job_page(frame_of(two_ranks()))
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]+\"", page)
    head = re.sub(r"<script>.*", "", page).replace("http-equiv", "")
    assert "@import" not in page and "url(" not in page and "http" not in head


def test_evidence_is_folded_and_short() -> None:
    rows = pd.DataFrame({"file": [f"/f{n}" for n in range(25)], "bytes": range(25)})
    grave = Finding("two-words", "problem", "It is slow.", "Do less.", rows, 12.0, 0.25)
    slight = Finding("other", "hint", "Maybe.", "Look.", pd.DataFrame(), 99.0)
    first, second = shown([grave, slight])
    assert (first.rule, first.cost) == (
        "Two words", "25 %",
    )  # fmt: skip
    assert first.evidence is not None and len(first.evidence.rows) == ROWS
    assert first.more.startswith("15 more rows") and second.evidence is None


def test_ticks_are_pleasant() -> None:
    assert ticks(87.0) == [0, 25, 50, 75, 100]
    assert ticks(3.6 * 2**30, base=1024) == [0, 2**30, 2 * 2**30, 3 * 2**30, 4 * 2**30]
    assert ticks(0.0) == [0, 1] and ticks(float("nan")) == [0, 1]
    assert clock(56.7) == [(0.0, "0"), (20.0, "20 s"), (40.0, "40 s")]
    assert [word for _, word in clock(700)] == ["0", "5 min", "10 min"]
    assert clock(0.0) == [(0.0, "0")]


def test_a_heat_map_shows_what_is_not_nothing() -> None:
    """One pixel for each cell: nothing is clear, a trace of something is seen, the most is solid."""
    markup = heat(["a", "b"], [[0, 1e-9], [5, 10]], 2.0, "label", "#0072b2", str)
    data = re.findall(r'base64,([^"]+)"', markup)[0]
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.size == (2, 2)
    alpha = [image.getpixel((x, y))[3] for y in (0, 1) for x in (0, 1)]  # type: ignore[index]
    assert alpha[0] == 0 and 20 < alpha[1] < 60 and alpha[2] == 128 and alpha[3] == 255


def test_stacked_steps_reach_their_height() -> None:
    markup = stack([Series("a", "#000000", [1, 1, 0]), Series("b", "#111111", [1, 0, 0])], 3, "l", str, 2.0)
    first, second = re.findall(r'<path d="([^"]+)"', markup)
    assert first == "M0,50L2,50L2,100L3,100L3,100L0,100Z"
    assert second.startswith("M0,0L1,0L1,50L2,50")


def test_many_ranks_and_files_make_no_large_page(frame_of: Maker) -> None:
    events = [
        call("read", n * 10, 9, pid=10 + n % 300, fname=f"/d/{'long' * 40}/{n}", ret=4096)
        for n in range(6000)
    ]  # fmt: skip
    page = job_page(frame_of(events))
    assert len(page) < 2_000_000
    assert "5 980 more files" in text_of(page)
    assert "Of 300 ranks, neighbours share a line" in text_of(page)


def test_the_command(frame_of: Maker, tmp_path: Path) -> None:
    trace = tmp_path / "t.parquet"
    frame_of(two_ranks()).to_parquet(trace)
    run = CliRunner()
    done = run.invoke(app, ["trace", "report", str(trace), "-o", str(tmp_path / "p.html"), "--rank", "0"])
    assert done.exit_code == 0 and done.stdout.strip() == str(tmp_path / "p.html")
    assert "1 file: 1 used by one rank alone." in text_of((tmp_path / "p.html").read_text())
    for arguments, why in (
        (["report", str(trace), "-o", "p.txt"], "is an .html file"),
        (["report", str(trace), "-o", str(tmp_path / "no" / "p.html")], "No such file"),
        (["report", str(trace), "--api", "posx"], "did you mean posix"),
        (["report", str(tmp_path / "none")], "none"),
    ):
        refused = run.invoke(app, ["trace", *arguments])
        assert isinstance(refused.exception, UserError) and why in str(refused.exception)
        assert "\n" not in str(refused.exception)


_PROBE = """
<script>
addEventListener("load", () => {
  const loaded = performance.getEntriesByType("resource").filter((r) => !r.name.startsWith("data:")).length;
  const drawings = document.querySelectorAll("figure.drawn").length;
  const wide = document.documentElement.scrollWidth <= innerWidth;
  const tall = [...document.querySelectorAll(".drawing")].every((d) => d.getBoundingClientRect().height > 20);
  document.title = `probe ${loaded} ${drawings} ${wide} ${tall} ${window.hacked ?? "safe"}`;
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_works_in_a_browser(width: int, frame_of: Maker, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    names = [*HOSTILE, "/p/<img src=x onerror=window.top.hacked=1>"]
    events = two_ranks() + [call("read", 10 * n, 9, fname=f, ret=5, offset=n) for n, f in enumerate(names)]
    path = tmp_path / "page.html"
    page = job_page(frame_of(events))
    # The page's policy lets its own scripts run alone: one that also has the probe gets one of its own.
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", page)
    assert bare != page
    probed = bare.replace("</body>\n</html>", f"{_PROBE}</body>\n</html>")
    path.write_text(secured(probed), encoding="utf-8")
    ended = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--no-first-run", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    # Nothing loaded, eight figures, no sideways scrolling, every chart has a height, and no name ran.
    told = re.findall(r"<title>(probe.*?)</title>", ended.stdout)
    assert told == ["probe 0 8 true true safe"], ended.stderr[-2000:]
    assert "CONSOLE" not in ended.stderr, ended.stderr[-2000:]


def test_a_page_replaces_only_a_page(tmp_path: Path) -> None:
    """Never the trace that it is of, nor somebody else's file; its own from before it does."""
    source = write(tmp_path / "t.pfw", [call("read", 0, 10, ret=4096, fname="/d/f")])
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    named_so = tmp_path / "trace.html"
    named_so.write_bytes(source.read_bytes())
    runner = CliRunner()
    for trace, target in ((source, mine), (named_so, named_so)):
        before = target.read_bytes()
        done = runner.invoke(app, ["trace", "report", str(trace), "-o", str(target), "--format", "dftracer"])
        assert isinstance(done.exception, UserError) and target.read_bytes() == before
    page = tmp_path / "page.html"
    for _ in range(2):
        assert runner.invoke(app, ["trace", "report", str(source), "-o", str(page)]).exit_code == 0


def test_the_page_says_what_was_chosen_and_what_is_only_a_part(frame_of: Maker) -> None:
    frame = frame_of(two_ranks())
    assert "only events with" not in text_of(job_page(frame))
    assert "only events with rank IN (1) and size > 0" in text_of(job_page(frame.select(1, "size > 0")))
    part = replace(frame, metadata={**frame.metadata, "partial": ["DXT_POSIX"]})
    assert "DXT_POSIX: Darshan ran out of its memory" in text_of(job_page(part))
