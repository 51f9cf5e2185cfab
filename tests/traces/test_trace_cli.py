from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from typer.testing import CliRunner, Result

from tiercel.cli.trace import app
from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.analysis.timeline import plot_timeline

from .conftest import call, compute, frame_of, hashed, write

__all__ = ["frame_of"]

KEYS = ["events", "job_time_s", "posix_bytes", "io_s", "overlapped_io_s", "nonoverlapped_io_s", "compute_s",
        "app_throughput_bytes_s", "system_throughput_bytes_s", "ranks", "warnings"]  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    # 2 s of I/O, of which 1 s behind computation; 40 bytes.
    return write(tmp_path / "x.pfw", [
        call("pread", 0, 2_000_000, ret=40, offset=0, fname="/d/a"), compute(1_000_000, 2_000_000),
    ])  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def answer(*arguments: object) -> dict[str, Any]:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(
        result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
    )
    return found


def test_overlap_as_json(trace: Path) -> None:
    found = answer("overlap", trace, "--json")
    assert list(found) == KEYS
    assert found == {
        "events": 2,
        "job_time_s": 3.0,
        "posix_bytes": 40,
        "io_s": 2.0,
        "overlapped_io_s": 1.0,
        "nonoverlapped_io_s": 1.0,
        "compute_s": 2.0,
        "app_throughput_bytes_s": 40.0,
        "system_throughput_bytes_s": 20.0,
        "ranks": 1,
        "warnings": [],
    }


def test_overlap_of_nothing_is_still_json(tmp_path: Path) -> None:
    (tmp_path / "x.pfw").write_text("[\n")
    found = answer("overlap", tmp_path / "x.pfw", "--json")
    assert list(found) == KEYS
    assert found["system_throughput_bytes_s"] is None
    assert found["warnings"] == ["x.pfw: no events in it"]


@pytest.mark.parametrize("command", ["overlap", "summary", "files"])
def test_tables_for_people(trace: Path, command: str) -> None:
    result = run(command, trace)
    assert result.exit_code == 0, result.output
    assert "20 B/s" in result.stdout


def test_summary_and_files_as_json(trace: Path) -> None:
    whole = answer("summary", trace, "--json")
    assert {*KEYS} <= {*whole}
    assert whole["layers"][0]["bytes_read"] == 40
    (file,) = answer("files", trace, "--json")["files"]
    assert (file["file"], file["bytes_read"], file["RO"], file["consecutive"]) == ("/d/a", 40, 40, 1)


def test_convert(trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    assert run("convert", trace, output).exit_code == 0
    assert open_trace(output).events().equals(open_trace(trace).events())
    assert run("convert", trace, tmp_path / "r.parquet", "--filter", "kind = 'read'").exit_code == 0
    assert len(open_trace(tmp_path / "r.parquet")) == 1


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_export_for_perfetto(trace: Path, tmp_path: Path, name: str) -> None:
    assert run("export-perfetto", trace, tmp_path / name).exit_code == 0
    raw = (tmp_path / name).read_bytes()
    events = json.loads(gzip.decompress(raw) if name.endswith("gz") else raw)["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["pid"]) for e in spans] == [
        ("pread", 0, 2e6, 0), ("TorchFramework.compute", 1e6, 2e6, 0),
    ]  # fmt: skip
    assert spans[0]["args"] == {"kind": "read", "file": "/d/a", "offset": 0, "size": 40}
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["rank 0"]


def test_timeline_page(tmp_path: Path) -> None:
    trace = write(tmp_path / "x.pfw", [call("pread", 0, 5, ret=4, fname="/d/</script><b>", offset=0)])
    page = tmp_path / "page.html"
    assert run("timeline", trace, "-o", page).exit_code == 0
    text = page.read_text()
    assert "http" not in text.replace("http-equiv", "")  # nothing is fetched
    assert text.count("</script>") == 2  # a file's name cannot end the script
    data = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
    assert (data["start"], data["duration"], data["files"]) == ([0], [5000], ["/d/</script><b>"])


def test_timeline_picture(trace: Path, tmp_path: Path) -> None:
    assert run("timeline", trace, "-o", tmp_path / "x.png").exit_code == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_large_timeline_is_merged(tmp_path: Path) -> None:
    events = [call("pread", 10 * i, 5, ret=1, offset=i, fname="/d/a", pid=10 + i % 2) for i in range(3000)]
    frame = open_trace(write(tmp_path / "x.pfw", events))
    table = frame.timeline(blocks=100)
    assert len(table) <= 100
    assert table["calls"].sum() == 3000
    assert table["bytes"].sum() == 3000
    assert len(frame.timeline()) == 3000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["overlap", "none"], "No such file"),
        (["overlap", "TRACE", "--api", "posx"], "did you mean posix"),
        (["overlap", "TRACE", "--memory", "1MB"], "--memory"),
        (["summary", "TRACE", "--memory", "1MiB"], "at least 64 MiB"),
        (["files", "TRACE", "--filter", " "], "--filter: is empty"),
        (["overlap", "TRACE", "--format", "dxt"], "no trace format"),
        (["files", "TRACE", "--filter", "sice > 1"], "filter"),
        (["timeline", "TRACE", "-o", "x.doc"], "x.doc"),
        (["timeline", "TRACE", "-o", "no/such/x.html"], "No such file"),
        (["convert", "TRACE", "x.csv"], ".parquet"),
        (["convert", "TRACE", "no/such/x.parquet"], "no/such/x.parquet"),
        (["export-perfetto", "TRACE", "x.txt"], ".json"),
    ],
)
def test_mistakes(trace: Path, arguments: list[str], said: str) -> None:
    result = run(*(str(trace) if a == "TRACE" else a for a in arguments))
    assert isinstance(result.exception, UserError)
    assert said in str(result.exception)


def test_a_filter_that_leaves_nothing_is_told(trace: Path) -> None:
    """No events are not "counters alone", which is what a log without events holds."""
    assert ": 0 events" in run("summary", trace, "--filter", "size = 12345678").output


def test_a_trace_is_not_overwritten(trace: Path, tmp_path: Path) -> None:
    run("convert", trace, tmp_path / "a.parquet")
    result = run("convert", tmp_path / "a.parquet", tmp_path / "a.parquet")
    assert "is the trace itself" in str(result.exception)


def test_explain_names_the_rule_and_its_evidence(tmp_path: Path) -> None:
    # 200 reads of 4 KiB, 1 ms each, and nothing else: all time in transfers below 1 MiB.
    reads = [call("pread", i * 1000, 1000, ret=4096, offset=i * 4096, fname="/d/a") for i in range(200)]
    path = write(tmp_path / "small.pfw", reads)
    found = answer("explain", path, "--json")["findings"]
    assert "small-transfers" in [f["rule"] for f in found]
    assert all(f["sentence"] and f["advice"] and f["evidence"] for f in found)
    assert "4 KiB" in run("explain", path).output


def test_explain_has_nothing_to_say_of_one_call(trace: Path) -> None:
    assert answer("explain", trace, "--json")["findings"] == []
    assert "No findings: 16 of 22 rules were checked" in run("explain", trace).output


def test_explain_refuses_a_size_that_is_none(trace: Path) -> None:
    result = run("explain", trace, "--stripe", "wide")
    assert isinstance(result.exception, UserError) and "--stripe" in str(result.exception)


def test_computation_hides_no_io_of_the_picture(frame_of: Callable[..., IOFrame]) -> None:
    """A read within a computation was drawn below its block, and could not be seen."""
    mpl.use("Agg")
    frame = frame_of(
        [hashed("f", "/data/a"), call("pread", 1000, 500, fhash="f", ret=10, offset=0), compute(0, 5000)]
    )
    drawn = [c.get_paths()[0].get_extents() for c in plot_timeline(frame).collections]
    read, computes = sorted(drawn, key=lambda extent: extent.width)
    assert read.y1 <= computes.y0 or computes.y1 <= read.y0
