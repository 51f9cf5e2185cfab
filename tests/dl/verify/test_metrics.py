"""The metrics of a trace whose calls can be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiercel.dl.verify.metrics import METRICS, metrics, of_dataset, transfers
from tiercel.traces import open_trace


def _trace(folder: Path, calls: list[tuple[str, str, int, int, int]]) -> Path:
    """Write a trace: (function, file, offset, bytes, microseconds), one call every millisecond."""
    files = sorted({file for _, file, *_ in calls})
    lines = [
        {"name": "FH", "cat": "dftracer", "pid": 1, "tid": 1, "ph": 4,
         "args": {"hhash": "h", "name": file, "value": f"f{n}"}}
        for n, file in enumerate(files)
    ]  # fmt: skip
    for n, (name, file, offset, size, took) in enumerate(calls):
        extra = {"ret": size, "offset": offset, "count": size} if name.startswith("p") else {}
        lines.append(
            {"id": n, "name": name, "cat": "POSIX", "pid": 1, "tid": 1, "ts": 1000 * n, "dur": took, "ph": 1,
             "args": {"hhash": "h", "fhash": f"f{files.index(file)}", **extra}}
        )  # fmt: skip
    path = folder / "t.pfw"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_metrics_by_hand(tmp_path: Path) -> None:
    data = tmp_path / "set"
    a, b, other = str(data / "train" / "a"), str(data / "train" / "b"), str(tmp_path / "settings.json")
    path = _trace(tmp_path, [
        ("open64", a, 0, 0, 10),
        ("pread", a, 0, 1000, 100),
        ("pread", a, 1000, 1000, 100),   # consecutive
        ("pread", a, 4000, 500, 100),    # sequential: after a gap
        ("pread", a, 4500, 0, 50),       # end of file: no transfer, but time
        ("pread", a, 0, 1500, 200),      # back: random
        ("pread", b, 0, 6000, 400),
        ("pwrite", b, 0, 2000, 40),
        ("pread", other, 0, 9999, 999),  # not of the dataset, though its name begins alike
    ])  # fmt: skip
    calls = of_dataset(open_trace(path, cache=tmp_path / "cache"), data)
    found = metrics(calls, 8192.0)
    assert found["io_time"] == pytest.approx(1000e-6)  # 10 + 100 + 100 + 100 + 50 + 200 + 400 + 40
    assert (found["bytes_read"], found["bytes_written"], found["files_read"]) == (10000, 2000, 2)
    # Transfers: 500, 1000, 1000, 1500, 2000, 6000.
    assert (found["transfer_min"], found["transfer_median"], found["transfer_max"]) == (500, 1250, 6000)
    assert found["transfer_mean"] == pytest.approx(2000)
    assert found["read_bandwidth"] == pytest.approx(10000 / 950e-6)  # the empty read takes time too
    assert found["write_bandwidth"] == pytest.approx(2000 / 40e-6)
    # Of six accesses one goes back and one leaves a gap; the first ones of a file are measured from byte 0.
    assert found["sequential_share"] == pytest.approx(5 / 6)
    assert found["consecutive_share"] == pytest.approx(4 / 6)
    # One file was opened; what the page cache holds is told by the caller.
    assert (found["opens"], found["bytes_fetched"]) == (1, 8192)
    assert list(found) == list(METRICS)
    # 500 lies in 256 to 511; 1000 twice in 512 to 1023; 1500 and 2000 in 1024 to 2047; 6000 from 4096 on.
    assert transfers(calls) == {"256": 1, "512": 2, "1024": 2, "4096": 1}


def test_a_trace_without_the_dataset_has_no_metrics(tmp_path: Path) -> None:
    path = _trace(tmp_path, [("pread", "/elsewhere/a", 0, 10, 5)])
    found = metrics(of_dataset(open_trace(path, cache=tmp_path / "cache"), tmp_path / "o'set"))
    assert found["bytes_read"] == 0
    assert found["transfer_mean"] is None and found["sequential_share"] is None


def test_what_was_done_before_the_training_is_left_out(tmp_path: Path) -> None:
    """strace's lines: a look into the file, then from 1000.5 s on a folder, a failed open, the training."""
    file, folder = tmp_path / "set" / "a", tmp_path / "set"
    path = tmp_path / "run.strace"
    path.write_text(
        f'7 1700001000.000000 openat(AT_FDCWD, "{file}", O_RDONLY) = 3<{file}> <0.000010>\n'
        f'7 1700001000.100000 read(3<{file}>, "", 4096) = 4096 <0.000010>\n'
        f'7 1700001000.600000 openat(AT_FDCWD, "{folder}/.", O_RDONLY|O_DIRECTORY) = 4<{folder}> <0.000010>\n'
        f'7 1700001000.700000 openat(AT_FDCWD, "{file}-b", O_RDONLY) = -1 ENOENT (No such file) <0.000010>\n'
        f'7 1700001000.800000 openat(AT_FDCWD, "{file}", O_RDONLY) = 5<{file}> <0.000010>\n'
        f'7 1700001000.900000 read(5<{file}>, "", 512) = 100 <0.000010>\n'
    )
    frame = open_trace(path, cache=tmp_path / "cache")
    whole, late = (metrics(of_dataset(frame, folder, since)) for since in (None, 1700001000.5))
    assert (whole["opens"], whole["bytes_read"]) == (2, 4196)
    assert (late["opens"], late["bytes_read"]) == (1, 100)
