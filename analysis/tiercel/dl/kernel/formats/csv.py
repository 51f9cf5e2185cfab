"""CSV files of numbers, a sample a row, below a line of column names as DLIO's; compressed on demand.

A file has no index, so opening one reads and parses it whole (as ``pandas.read_csv``), in pieces of 256 KiB.
"""

from __future__ import annotations

import bz2
import ctypes
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO as Stream
from typing import Any

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec
from tiercel.dl.kernel.formats.base import TRANSFER, Format, Opened, Whole, register
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.native import CSVScan, address, library
from tiercel.dl.kernel.spec import Spec

_WORDS = 4096
_BROKEN = (OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError, ValueError)


@register("csv")
class CSV(Format):
    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        words, columns = _words(spec.element, spec.data_seed), file.sample_bytes // file.element_bytes
        with _writer(path, spec) as out:
            out.write(b",".join(b"%d" % column for column in range(columns)) + b"\n")
            for sample in range(file.samples):
                start = random.Random(f"{file.seed}:{sample}").randrange(_WORDS)
                turned = words[start:] + words[:start]
                row = turned * (columns // _WORDS) + turned[: columns % _WORDS]
                out.write(b",".join(row) + b"\n")

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        scan, size, problem, named = CSVScan(), 0, 0, 1
        buffer = bytearray(spec.transfer or TRANSFER)
        feed = _feeder(buffer)
        heading = True
        try:
            with _reader(RawFile(calls, path), spec) as text:
                while got := text.readinto(buffer):
                    size += got
                    if heading:  # the column names, up to the first end of a line
                        end = buffer.find(b"\n", 0, got)
                        heading = end < 0
                        skipped = got if heading else end + 1
                        named += buffer.count(b",", 0, skipped)
                        buffer[: got - skipped] = buffer[skipped:got]
                        got -= skipped
                    if problem := feed(scan, got, 0):
                        break
                problem = problem or feed(scan, 0, 1)
        except _BROKEN as error:
            raise Failure(f"{path}: damaged after row {scan.rows}: {error}") from None
        if problem == 1:
            raise Failure(f"{path}: sample {scan.rows} is damaged: column {scan.values} is no number")
        if problem:
            raise Failure(
                f"{path}: sample {scan.rows} is damaged: {scan.values} columns where the first has "
                f"{scan.columns}"
            )
        if scan.rows and scan.columns != named:
            raise Failure(
                f"{path}: sample 0 is damaged: {scan.columns} columns where the heading has {named}"
            )
        return Whole(path, scan.rows, size // max(1, scan.rows))

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        with io.BufferedReader(RawFile(calls, path)) as raw, _reader(raw, spec) as text:
            first = text.readline()
        columns = first.count(b",") + 1
        return None, columns * spec.element_bytes


def _writer(path: str, spec: Spec) -> Any:
    level = spec.compression_level
    try:
        if spec.compression == "gzip":
            return gzip.GzipFile(path, "wb", level, mtime=0)
        if spec.compression == "bz2":
            return bz2.BZ2File(path, "wb", compresslevel=max(1, level))
        if spec.compression == "xz":
            return lzma.LZMAFile(path, "wb", preset=level)
        if spec.compression == "zip":
            return _Member(path, level)
        return Path(path).open("wb", buffering=1 << 20)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from None


class _Member:
    """The only file of a zip archive, for writing."""

    def __init__(self, path: str, level: int) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level)
        self._file = self._archive.open(zipfile.ZipInfo("data.csv"), "w", force_zip64=True)

    def __enter__(self) -> Stream[bytes]:
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._archive.close()


def _reader(raw: Any, spec: Spec) -> Any:
    if spec.compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if spec.compression == "bz2":
        return bz2.BZ2File(raw)
    if spec.compression == "xz":
        return lzma.LZMAFile(raw)
    if spec.compression == "zip":
        archive = zipfile.ZipFile(raw)
        return archive.open(archive.namelist()[0])
    return raw


@cache
def _words(element: str, seed: int) -> list[bytes]:
    """Return random numbers as text: seven decimals for floats (ten bytes with the comma), else integers."""
    draw = random.Random(seed)
    if element.startswith("float"):
        return [f"0.{draw.randrange(10**7):07d}".encode() for _ in range(_WORDS)]
    return [str(draw.randrange(256)).encode() for _ in range(_WORDS)]


def _feeder(buffer: bytearray) -> Callable[[CSVScan, int, int], int]:
    native = library()
    if native is not None:
        place = address(buffer)
        return lambda scan, got, last: int(native.dlkernel_csv_feed(ctypes.byref(scan), place, got, last))
    return _Feed(buffer)


class _Feed:
    """What native/dlkernel/src/csv.c does, in Python."""

    def __init__(self, buffer: bytearray) -> None:
        self._buffer, self._rest = buffer, b""

    def __call__(self, scan: CSVScan, got: int, last: int) -> int:
        text = self._rest + bytes(self._buffer[:got])
        lines = text.split(b"\n")
        self._rest = b"" if last else lines.pop()
        for line in lines:
            if last and not line:
                continue
            values = line.split(b",")
            numbers = 0
            with suppress(ValueError):
                for value in values:
                    float(value)
                    numbers += 1
            scan.values = numbers
            if numbers < len(values):
                return 1
            if not scan.rows:
                scan.columns = numbers
            if numbers != scan.columns:
                return 2
            scan.rows += 1
            scan.values = 0
        return 0
