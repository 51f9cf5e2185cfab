"""NPZ files: a zip archive with ``x.npy`` (all samples) and ``y.npy`` (labels), as numpy.savez writes it.

Opening one reads ``x`` whole and checks its checksum, in pieces of 256 KiB, as ``numpy.load(path)["x"]``.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from tiercel.dl.kernel.direct import whole_file
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import TRANSFER, Format, Opened, Whole, register
from tiercel.dl.kernel.formats.npy import dimensions, header, parse_header
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.spec import Spec

_LOCAL = struct.Struct("<26xHH")  # at the end of a local file header: lengths of name and extra field
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
            raise Failure(f"{path}: damaged: {str(error).strip(chr(39)) or type(error).__name__}") from None
        return Whole(path, samples, each)

    def describe(self, path: str, spec: Spec) -> tuple[int | None, int | None]:
        try:
            with zipfile.ZipFile(path) as archive, archive.open("x.npy") as member:
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
    with io.BufferedReader(raw, 4096) as file:
        info = zipfile.ZipFile(file).getinfo("x.npy")
        file.seek(info.header_offset)
        local = file.read(30)
        name, extra = _LOCAL.unpack(local)
        raw.seek(info.header_offset + 30 + name + extra)
        buffer = memoryview(bytearray(spec.transfer or TRANSFER))
        left, crc, head, unpacked = info.compress_size, 0, b"", 0
        inflate = zlib.decompressobj(-15) if info.compress_type == zipfile.ZIP_DEFLATED else None
        while left > 0:
            got = raw.readinto(buffer[: min(left, len(buffer))])
            if not got:
                raise EOFError("the archive is cut off")
            left -= got
            data: bytes | memoryview = buffer[:got]
            if inflate:
                data = inflate.decompress(data)
            crc = zlib.crc32(data, crc)
            unpacked += len(data)
            if len(head) < 4096:
                head += bytes(data[: 4096 - len(head)])
    return _checked(path, info, crc, head, unpacked)


def _checked(path: str, info: zipfile.ZipInfo, crc: int, head: bytes, unpacked: int) -> tuple[int, int]:
    if crc != info.CRC:
        raise zipfile.BadZipFile("the checksum of x.npy is wrong")
    shape, size, start = parse_header(head, path)
    samples, each = dimensions(shape, size)
    if unpacked != start + samples * each:
        raise zipfile.BadZipFile(f"x.npy has {unpacked} bytes, its header says {start + samples * each}")
    return samples, each


def _direct(path: str, spec: Spec, calls: IO) -> tuple[int, int]:
    with zipfile.ZipFile(io.BytesIO(whole_file(path, calls, spec.transfer))) as archive:
        data = archive.read("x.npy")  # checks the checksum
    shape, size, start = parse_header(data[:4096], path)
    samples, each = dimensions(shape, size)
    if len(data) != start + samples * each:
        raise zipfile.BadZipFile("x.npy is not as long as its header says")
    return samples, each
