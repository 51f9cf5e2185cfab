"""The C library and the Python that stands in for it do the same."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiercel.dl.kernel import crc
from tiercel.dl.kernel.formats import csv, tfrecord
from tiercel.dl.kernel.native import CSVScan, TFRecordScan, library

needs_library = pytest.mark.skipif(library() is None, reason="not built: make -C native/dlkernel builds it")


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (crc, tfrecord, csv):
        monkeypatch.setattr(module, "library", lambda: None)


def record(body: bytes) -> bytes:
    head = len(body).to_bytes(8, "little")
    return (
        head + crc.masked(crc.crc32c(head)).to_bytes(4, "little")
        + body + crc.masked(crc.crc32c(body)).to_bytes(4, "little")
    )  # fmt: skip


def feed_tfrecord(data: bytes, piece: int, native: bool) -> tuple[int, ...]:
    scan, problem = TFRecordScan(check=1), 0
    buffer = bytearray(max(1, piece))
    found = library()
    for start in range(0, len(data), max(1, piece)):
        part = data[start : start + piece]
        buffer[: len(part)] = part
        if native and found is not None:
            place = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
            problem = found.dlkernel_tfrecord_feed(ctypes.byref(scan), place, len(part))
        else:
            problem = tfrecord._feed(scan, memoryview(buffer)[: len(part)])
        if problem:
            break
    return problem, scan.records, scan.payload, scan.offset, scan.part


@needs_library
@settings(max_examples=60)
@given(
    st.lists(st.binary(max_size=60), max_size=5), st.integers(1, 40), st.integers(0, 400), st.integers(0, 255)
)
def test_tfrecord_scans_agree_on_any_bytes(bodies: list[bytes], piece: int, where: int, byte: int) -> None:
    data = bytearray(b"".join(record(b) for b in bodies))
    sound = feed_tfrecord(bytes(data), piece, native=True)
    assert sound[:3] == (0, len(bodies), sum(len(b) for b in bodies))
    if data:
        data[where % len(data)] = byte
    assert feed_tfrecord(bytes(data), piece, native=True) == feed_tfrecord(bytes(data), piece, native=False)


def feed_csv(data: bytes, piece: int, native: bool) -> tuple[int, ...]:
    scan, buffer = CSVScan(), bytearray(max(1, piece))
    found = library()
    python = csv._Feed(buffer)

    def feed(got: int, last: int) -> int:
        if native and found is not None:
            place = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
            return int(found.dlkernel_csv_feed(ctypes.byref(scan), place, got, last))
        return python(scan, got, last)

    problem = 0
    for start in range(0, len(data), piece):
        part = data[start : start + piece]
        buffer[: len(part)] = part
        problem = feed(len(part), 0)
        if problem:
            return problem, 0
    return feed(0, 1), scan.rows


@needs_library
@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"1,2\n3,4\n", (0, 2)),
        (b"1,2\n3,4", (0, 2)),  # without a newline at the end
        (b"1.5e3,-2\r\n3,4\r\n", (0, 2)),
        (b"1,2\n3\n", (2, 0)),
        (b"1,x\n", (1, 0)),
        (b"1,,2\n", (1, 0)),
        (b"", (0, 0)),
    ],
)
def test_csv_scans_agree(text: bytes, expected: tuple[int, int], piece: int) -> None:
    for native in (True, False):
        problem, rows = feed_csv(text, piece, native)
        assert (problem, rows if not problem else 0) == expected


def test_python_alone_knows_the_check_value(without_library: None) -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283


@needs_library
@settings(max_examples=40)
@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_crc_can_be_continued(data: bytes, cut: int) -> None:
    whole = crc.crc32c(data)
    assert crc.crc32c(bytearray(data[cut:]), crc.crc32c(data[:cut])) == whole
    table, value = crc._table(), 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    assert value ^ 0xFFFFFFFF == whole


@pytest.mark.skipif(not os.environ.get("CC") and not Path("/usr/bin/cc").exists(), reason="no C compiler")
def test_the_library_says_its_version() -> None:
    found = library()
    if found is None:
        pytest.skip("not built: make -C native/dlkernel builds it")
    assert found.dlkernel_abi() == 1
