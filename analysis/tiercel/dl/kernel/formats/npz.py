"""NPZ files: a zip archive with ``x.npy`` (all samples) and ``y.npy`` (labels), as numpy.savez writes it.

Opening one reads ``x`` whole and checks its checksum, with the system calls of ``numpy.load(path)["x"]``: the
archive's directory, the member's header, and pieces of 256 KiB through Python's buffer, of which the last
block of each is a read of its own.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from typing import IO as IO_

from tiercel.dl.kernel.direct import whole_file
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import TRANSFER, Format, Opened, Whole, register
from tiercel.dl.kernel.formats.npy import dimensions, header, parse_header
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.spec import Spec

_ARRAY = "x.npy"
#: Bytes by which numpy tells its own files from archives.
_MAGIC = 6
_WHEN = (1980, 1, 1, 0, 0, 0)


@register("npz")
class NPZ(Format):
    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        method = zipfile.ZIP_DEFLATED if spec.compression == "zip" else zipfile.ZIP_STORED
        try:
            with zipfile.ZipFile(path, "w", method) as archive:
                array = header((*file.shape, file.samples), spec.element)
                data = content(spec, file.seed, file.samples * file.sample_bytes)
                _member(archive, "x.npy", method, [memoryview(array), *data])
                labels = header((file.samples,), "int64") + bytes(8 * file.samples)
                _member(archive, "y.npy", method, [memoryview(labels)])
        except OSError as error:
            raise Failure(f"{path}: cannot be written: {error.strerror}") from None

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        try:
            samples, each = _direct(path, spec, calls) if spec.direct else _read(path, spec, calls)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
            said = str(error).strip(chr(39)) or type(error).__name__
            if said.startswith("Bad CRC-32"):
                said = f"the checksum of {_ARRAY} is wrong"
            raise Failure(f"{path}: damaged: {said}") from None
        return Whole(path, samples, each)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        try:
            raw = io.BufferedReader(RawFile(calls, path, "ranges"))
            with raw, zipfile.ZipFile(raw) as archive, archive.open("x.npy") as member:
                shape, size, _ = parse_header(member.read(4096), path)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise Failure(f"{path}: not an NPZ file with an array x: {error}") from None
        return dimensions(shape, size)


def _member(archive: zipfile.ZipFile, name: str, method: int, pieces: list[memoryview]) -> None:
    info = zipfile.ZipInfo(name, _WHEN)  # no time of day: the same seed gives the same file
    info.compress_type = method
    with archive.open(info, "w", force_zip64=True) as member:
        for piece in pieces:
            member.write(piece)


def _read(path: str, spec: Spec, calls: IO) -> tuple[int, int]:
    raw = RawFile(calls, path)
    with io.BufferedReader(raw, raw.block) as file:
        file.read(_MAGIC)  # numpy looks what kind of file it is
        file.seek(-_MAGIC, os.SEEK_CUR)
        with zipfile.ZipFile(file) as archive, archive.open("x.npy") as member:
            member.read(_MAGIC)  # and so it does with the member
            member.seek(0)
            return _array(path, spec, member)


def _array(path: str, spec: Spec, member: IO_[bytes]) -> tuple[int, int]:
    """Read an array: its header as numpy does, in small steps, then the data."""
    head = member.read(8)
    wide = head[6:7] > b"\x01"
    head += member.read(4 if wide else 2)
    head += member.read(int.from_bytes(head[8:], "little"))
    shape, size, _ = parse_header(head, path)
    samples, each = dimensions(shape, size)
    left = samples * each
    while left > 0:
        got = len(member.read(min(left, spec.transfer or TRANSFER)))
        if not got:
            raise EOFError(f"x.npy ends {left} bytes before its header says")
        left -= got
    if member.read(1):
        raise zipfile.BadZipFile("x.npy is longer than its header says")
    return samples, each


def _direct(path: str, spec: Spec, calls: IO) -> tuple[int, int]:
    with zipfile.ZipFile(io.BytesIO(whole_file(path, calls, spec.transfer))) as archive:
        data = archive.read("x.npy")  # checks the checksum
    shape, size, start = parse_header(data[:4096], path)
    samples, each = dimensions(shape, size)
    if len(data) != start + samples * each:
        raise zipfile.BadZipFile("x.npy is not as long as its header says")
    return samples, each
