from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiercel.errors import UserError
from tiercel.traces import IOFrame, open_trace
from tiercel.traces.readers.native import NativeScanner, load_library
from tiercel.traces.readers.scan import COLUMNS, MISSING, TABLES, Block, PythonScanner, Scanner

from .conftest import Event, call, hashed, write

Make = Callable[[list[Event]], IOFrame]

# ruff: noqa: E501 -- lines as tracers write them
OLD = """[
{"id":"0","name":"open64","cat":"POSIX","pid":"3","tid":"77","ts":"1698352095942658","dur":"8","ph":"X","args":{"hostname":"ruby165","ret":20,"fname":"/p/f","flags":0}}
{"id":"1","name":"read","cat":"POSIX","pid":"3","tid":"77","ts":"1698352095942670","dur":"5","ph":"X","args":{"hostname":"ruby165","ret":"4096","count":"4096","fname":"/p/f","fd":20}},
{"id":"2","name":"TorchFramework.compute","cat":"ai_framework","pid":"3","tid":"77","ts":"1698352095942680","dur":"10","ph":"X","args":{"hostname":"ruby165","epoch":"2","step":7}}
]"""

MIDDLE = """[
{"id":1,"name":"HH","cat":"dftracer","pid":10,"tid":10,"ph":"M","args":{"hhash":9509357668201227806,"name":"corona171","value":9509357668201227806}}
{"id":2,"name":"FH","cat":"dftracer","pid":10,"tid":10,"ph":"M","args":{"hhash":9509357668201227806,"name":"/p/f","value":12046336058336786775}}
{"id":3,"name":"pread","cat":"POSIX","pid":10,"tid":10,"ts":1744611914277772,"dur":39,"ph":"X","args":{"hhash":9509357668201227806,"p_idx":9,"fhash":12046336058336786775,"ret":8,"count":8,"offset":4}}
"""

NEW = """{"name":"HH","cat":"dftracer","type":1,"pid":9476,"tid":9476,"ph":4,"args":{"hhash":"6882804a826580cd","name":"vm","value":"6882804a826580cd"}}
{"name":"FH","cat":"dftracer","type":1,"pid":9476,"tid":9476,"ph":4,"args":{"hhash":"6882804a826580cd","name":"/p/f","value":"e1fbb8430d5c57ea"}}
{"id":4,"name":"pwrite","cat":"POSIX","type":3,"pid":9476,"tid":9476,"ts":1795234426814424,"dur":17,"ph":1,"args":{"hhash":"6882804a826580cd","ret":4096,"offset":0,"count":4096,"fhash":"e1fbb8430d5c57ea"}}
"""


def opened(tmp_path: Path, text: str | bytes, name: str = "x.pfw") -> IOFrame:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_trace(path)


def test_oldest_schema(tmp_path: Path) -> None:
    events = opened(tmp_path, OLD).events()
    assert events["function"].tolist() == ["open64", "read", "TorchFramework.compute"]
    assert events["kind"].tolist() == ["metadata", "read", "compute"]
    assert events["api"].tolist() == ["posix", "posix", "app"]
    read = events.iloc[1]
    assert (read["file"], read["host"], read["process"], read["thread"]) == ("/p/f", "ruby165", 3, 77)
    assert (read["offset"], read["size"]) == (0, 4096)  # after the open
    assert read["time"] == pytest.approx(12e-6, abs=1e-9)
    assert read["duration"] == pytest.approx(5e-6, abs=1e-12)
    assert events.loc[2, ["epoch", "step"]].tolist() == [2, 7]


@pytest.mark.parametrize(("text", "host"), [(MIDDLE, "corona171"), (NEW, "vm")])
def test_schemas_with_hashes(tmp_path: Path, text: str, host: str) -> None:
    frame = opened(tmp_path, text)
    assert len(frame) == 1  # metadata lines are no events
    event = frame.events().iloc[0]
    assert (event["file"], event["host"]) == ("/p/f", host)
    assert not frame.warnings


def test_gzip_in_several_members(tmp_path: Path) -> None:
    lines = NEW.splitlines(keepends=True)
    packed = b"".join(gzip.compress(line.encode()) for line in lines)
    frame = opened(tmp_path, packed, "x.pfw.gz")
    assert len(frame) == 1
    assert not frame.warnings


def test_forked_process_uses_its_parents_metadata(tmp_path: Path) -> None:
    # The worker's file names a hash that only the parent's file explains, and it sorts before it.
    write(
        tmp_path / "t" / "run-1-fork.pfw",
        [
            call("start", 5, 0, "dftracer", 11, ppid=10, cmd_hash="c"),
            call("read", 6, 1, pid=11, ret=5, fhash="ab", hhash="cd"),
        ],
    )
    write(
        tmp_path / "t" / "run-2.pfw",
        [
            call("start", 0, 0, "dftracer", 10, ppid=1, cmd_hash="c"),
            hashed("ab", "/p/f"),
            hashed("cd", "n1", "HH"),
        ],
    )
    frame = open_trace(tmp_path / "t")
    assert frame.events().query("function == 'read'")[["file", "host", "rank"]].values.tolist() == [
        ["/p/f", "n1", 0]
    ]


def test_a_hash_explained_only_later(tmp_path: Path) -> None:
    frame = open_trace(
        write(tmp_path / "t.pfw", [call("pread", 0, 1, ret=1, offset=0, fhash="ab"), hashed("ab", "/p/f")])
    )
    assert frame.events()["file"].tolist() == ["/p/f"]


def test_ranks(tmp_path: Path) -> None:
    """Processes are numbered by their first event; a worker has its parent's rank, a new program not."""
    folder = tmp_path / "t"
    starts = {30: (1, "a"), 20: (1, "a"), 40: (30, "a"), 50: (20, "b")}  # pid: (parent, command)
    for n, (pid, (parent, command)) in enumerate(starts.items()):
        write(
            folder / f"run-{pid}.pfw", [call("start", n, 0, "dftracer", pid, ppid=parent, cmd_hash=command)]
        )
    events = open_trace(folder).events()
    assert dict(zip(events["process"], events["rank"], strict=True)) == {30: 0, 20: 1, 40: 0, 50: 2}


def test_rank_in_the_file_name(tmp_path: Path) -> None:
    for rank in (1, 0):
        write(tmp_path / "t" / f"trace-{rank}-of-2.pfw.gz", [call("open", 9 - rank, 1, pid=100 + rank)])
    events = open_trace(tmp_path / "t").events()
    assert dict(zip(events["process"], events["rank"], strict=True)) == {100: 0, 101: 1}


def test_positions_are_tracked(frame_of: Make) -> None:
    f = {"fname": "/p/f", "fd": 5}
    events = [
        call("open", 0, 1, fname="/p/f", ret=5, flags=66),
        call("write", 1, 1, ret=100, **f),  # at 0
        call("write", 2, 1, ret=20, **f),  # at 100
        call("lseek", 3, 1, ret=50, offset=50, whence=0, **f),
        call("read", 4, 1, ret=25, count=999, **f),  # at 50, moves 25
        call("pread", 5, 1, ret=7, offset=3, **f),  # at 3, moves nothing on
        call("read", 6, 1, ret=-1, **f),  # fails at 75: moves no bytes
        call("readv", 7, 1, ret=5, **f),  # at 75
        call("close", 8, 1, ret=0, **f),
        call("read", 9, 1, ret=5, **f),  # of whatever 5 is now
        call("open", 10, 1, fname="/p/f", ret=5, flags=1025),
        call("write", 11, 1, ret=5, **f),  # appended: at an end that the trace does not tell
    ]
    table = frame_of(events).events()
    data = table[table["kind"].isin(["read", "write"])]
    assert data["offset"].tolist()[:-2] == [0, 100, 50, 3, 75, 75]
    assert data["offset"].isna().tolist()[-2:] == [True, True]
    assert data["size"].tolist()[:4] == [100, 20, 25, 7] and data["size"].tolist()[5:] == [5, 5, 5]
    # What failed is no transfer of 0 bytes.
    assert data["size"].isna().tolist() == data["failed"].tolist() == [n == 4 for n in range(8)]


def test_positions_of_buffered_files(frame_of: Make) -> None:
    # fseek returns 0, not the position; fread and fwrite count items.
    f = {"fname": "/p/f"}
    table = frame_of(
        [
            call("fopen", 0, 1, "STDIO", mode="w", **f),
            call("fwrite", 1, 1, "STDIO", ret=100, size=8, **f),
            call("fseek", 2, 1, "STDIO", ret=0, offset=16, whence=0, **f),
            call("fwrite", 3, 1, "STDIO", ret=10, size=1, **f),
            call("fseek", 4, 1, "STDIO", ret=0, offset=-6, whence=1, **f),
            call("fread", 5, 1, "STDIO", ret=1, size=4, **f),
        ]
    ).events()
    data = table[table["kind"].isin(["read", "write"])]
    assert data[["offset", "size"]].values.tolist() == [[0, 800], [16, 10], [20, 4]]


def test_garbled_lines_are_counted(tmp_path: Path) -> None:
    lines = NEW.splitlines()
    text = (
        "\n".join([lines[0], '{"id":3,"name":"re\x00', lines[1], lines[2], "no json", '{"id":1}', lines[2]])
        + "\n"
    )
    frame = opened(tmp_path, text)
    assert len(frame) == 2
    assert len(frame.warnings) == 1
    assert frame.warnings[0].startswith("x.pfw: 3 lines lost")


def test_an_unfinished_last_line(tmp_path: Path) -> None:
    frame = opened(tmp_path, NEW + NEW.splitlines()[2][:80])
    assert len(frame) == 1
    assert frame.warnings == ("x.pfw: the last line has no end: 1 event lost",)


def test_truncated_gzip(tmp_path: Path) -> None:
    noise = random.Random(1)
    events = [
        call("pread", i, 1, ret=noise.randrange(10**9), offset=noise.randrange(10**9), fname="/p/f")
        for i in range(2000)
    ]
    whole = write(tmp_path / "x.pfw.gz", events).read_bytes()
    frame = opened(tmp_path, whole[: len(whole) // 2], "half.pfw.gz")
    assert 500 < len(frame) < 1500
    assert any("ends in the middle" in sentence for sentence in frame.warnings)


def test_damaged_gzip(tmp_path: Path) -> None:
    noise = random.Random(1)
    events = [
        call("pread", i, 1, ret=noise.randrange(10**9), offset=noise.randrange(10**9), fname="/p/f")
        for i in range(9000)
    ]
    whole = bytearray(write(tmp_path / "x.pfw.gz", events).read_bytes())
    whole[-3000:-2900] = bytes(100)
    frame = opened(tmp_path, bytes(whole), "bad.pfw.gz")
    assert len(frame) > 1000
    assert any("damaged gzip" in sentence for sentence in frame.warnings)


def test_an_empty_file_among_others(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.pfw", [call("open", 0, 1)])
    (tmp_path / "t" / "b-fork.pfw.gz").write_bytes(b"")
    frame = open_trace(tmp_path / "t")
    assert len(frame) == 1
    assert frame.warnings == ("b-fork.pfw.gz: no events in it",)


def test_only_an_empty_file(tmp_path: Path) -> None:
    frame = opened(tmp_path, b"", "x.pfw.gz")
    assert len(frame) == 0
    assert frame.warnings == ("x.pfw.gz: no events in it",)
    assert frame.overlap().loc["all", "bytes"] == 0


def test_no_trace_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"notes.txt: not a trace"):
        opened(tmp_path, "hello\n", "notes.txt")
    with pytest.raises(UserError, match=r"x.pfw: not a DFTracer trace"):
        opened(tmp_path, "hello\n", "x.pfw")
    with pytest.raises(UserError, match=r"y.txt: not a DFTracer trace"):
        (tmp_path / "y.txt").write_text("hello\n")
        IOFrame.from_dftracer(tmp_path / "y.txt")
    with pytest.raises(UserError, match="No such file"):
        open_trace(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no trace in this folder"):
        open_trace(tmp_path / "empty")


def test_names_that_are_no_plain_text(tmp_path: Path) -> None:
    name = b'/p/\xff\\u00e9\\ud800\\"x'
    text = b'{"name":"open","cat":"POSIX","pid":1,"ts":5,"ph":1,"args":{"fname":"' + name + b'"}}\n'
    assert opened(tmp_path, text).events()["file"].tolist() == ['/p/\\xffé?"x']


def test_an_event_without_a_name(frame_of: Make) -> None:
    frame = frame_of([call("", 0, 1, fname="/p/f"), call("read", 1, 1, fname="/p/f", ret=3)])
    assert frame.events()["kind"].tolist() == ["other", "read"]


def test_truncation_never_fails(tmp_path: Path) -> None:
    """Whatever is cut off the end, what comes before it is read, or it is called no trace."""
    text = (OLD + "\n" + MIDDLE + NEW).encode()
    whole = sum(b'"ph":"X"' in line or b'"ph":1' in line for line in text.splitlines())
    for size in range(0, len(text), 37):
        for name, data in (("x.pfw", text[:size]), ("x.pfw.gz", gzip.compress(text)[: size // 4])):
            path = tmp_path / str(size) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            try:
                assert len(open_trace(path)) <= whole
            except UserError as error:
                assert "not a DFTracer trace" in str(error)


# -- the two scanners ------------------------------------------------------------------------------------

needs_library = pytest.mark.skipif(
    load_library() is None, reason="native/tracescan is not built (make setup)"
)


def both() -> tuple[Scanner, Scanner]:
    library = load_library()
    assert library is not None
    return PythonScanner(), NativeScanner(library)


def same(one: Block, other: Block) -> None:
    for name in COLUMNS:
        assert one.columns[name].tolist() == other.columns[name].tolist(), name
    for name in ("notes", "metadata", "lost_lines", "lost_bytes", "other_lines", "unfinished"):
        assert getattr(one, name) == getattr(other, name), name


def compare(blocks: list[bytes]) -> None:
    slow, quick = both()
    for block in blocks:
        one, other = slow.scan(block), quick.scan(block)
        same(one, other)
        for table in TABLES:
            assert slow.words(table, 0) == quick.words(table, 0)
        functions = len(slow.words("name", 0))
        roles = np.arange(functions, dtype=np.int64) % 9
        sizes = np.where(one.columns["ret"] == MISSING, 5, one.columns["ret"])
        assert (
            slow.track(one.columns, roles, sizes).tolist()
            == quick.track(other.columns, roles, sizes).tolist()
        )


@needs_library
def test_scanners_agree_on_every_schema() -> None:
    compare([OLD.encode(), MIDDLE.encode(), NEW.encode(), b"", b"\n\n", NEW.encode()[:-20]])


VALUES = st.one_of(
    st.integers(-(2**64), 2**64),
    st.integers(0, 30),
    st.text(max_size=5),
    st.floats(),
    st.none(),
    st.booleans(),
    st.integers(0, 99).map(str),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
)
KEYS = ["name", "cat", "pid", "tid", "ts", "dur", "ph", "args", "id"]
ARGUMENTS = [
    "hhash",
    "hostname",
    "fhash",
    "fname",
    "ret",
    "offset",
    "count",
    "size",
    "whence",
    "flags",
    "fd",
    "epoch",
    "step",
    "name",
    "value",
    "x",
]
GOOD = {"name": "read", "cat": "POSIX", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "ph": 1}


@needs_library
@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=2),
            st.dictionaries(st.sampled_from(ARGUMENTS), VALUES, max_size=6),
            st.sampled_from(["1", "4", '"X"', '"M"', '"C"', "2"]),
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_scanners_agree_on_odd_values(lines: list[tuple[Event, Event, str]], ascii_only: bool) -> None:
    made = []
    for changed, arguments, phase in lines:
        event = {**GOOD, "ph": json.loads(phase), "args": arguments, **changed}
        made.append(json.dumps(event, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") + b"\n")
    compare([b"".join(made)])


@needs_library
@settings(max_examples=300)
@given(
    st.integers(0, len(NEW) - 1),
    st.binary(max_size=3),
    st.integers(0, 4),
    st.sampled_from([OLD, MIDDLE, NEW]),
)
def test_scanners_agree_on_damage(place: int, inserted: bytes, removed: int, text: str) -> None:
    data = text.encode()
    place %= len(data)
    compare([data[:place] + inserted + data[place + removed :], NEW.encode()])


@needs_library
def test_scanners_agree_on_many_words_and_files() -> None:
    noise = random.Random(3)
    lines = []
    for i in range(20_000):
        args = {
            "ret": noise.randrange(-2, 50),
            "fd": noise.randrange(40),
            "fname": f"/d/{noise.randrange(5000)}",
            "offset": noise.randrange(9),
            "whence": noise.randrange(3),
        }
        lines.append(json.dumps(call(f"f{noise.randrange(12)}", i, 1, pid=noise.randrange(5), **args)))
    text = "\n".join(lines).encode()
    compare([text[: len(text) // 2], text[len(text) // 2 :]])


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiercel.traces.readers.native.load_library", lambda: None)
    assert len(opened(tmp_path, OLD)) == 3
