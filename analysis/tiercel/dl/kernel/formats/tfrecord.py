"""TFRecord files of tf.train.Example records, as DLIO and TensorFlow write them, without TensorFlow.

A record: length (8 bytes, little endian), masked CRC-32C of it, content, masked CRC-32C of the content. The
content is a protocol buffer with two features: ``image`` (bytes) and ``size`` (its length).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

from tiercel.dl.kernel.crc import crc32c, masked
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import TRANSFER, Format, Opened, create, register, write_all
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.native import TFRecordScan, address, library
from tiercel.dl.kernel.spec import Spec

_HEAD = struct.Struct("<QI")
_WORD = struct.Struct("<I")
_AROUND = 16


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _field(number: int, length: int) -> bytes:
    """Return the head of a length-delimited field."""
    return _varint(number << 3 | 2) + _varint(length)


def example_around(length: int) -> tuple[bytes, bytes]:
    """Return what stands before and after the image's bytes in a serialized Example."""
    key = _field(1, 5) + b"image"
    bytes_value = _field(1, length)
    bytes_list = _field(1, len(bytes_value) + length)
    value = _field(2, len(bytes_list) + len(bytes_value) + length)
    entry = len(key) + len(value) + len(bytes_list) + len(bytes_value) + length
    image = _field(1, entry) + key + value + bytes_list + bytes_value
    number = _varint(length)
    packed = _field(1, len(number)) + number
    int_list = _field(3, len(packed)) + packed
    size_entry = _field(1, 4) + b"size" + _field(2, len(int_list)) + int_list
    size = _field(1, len(size_entry)) + size_entry
    features = len(image) + length + len(size)
    return _field(1, features) + image, size


@register("tfrecord")
class TFRecord(Format):
    streams = True

    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        length = file.sample_bytes
        before, after = example_around(length)
        total = len(before) + length + len(after)
        start = struct.pack("<Q", total)
        head = _HEAD.pack(total, masked(crc32c(start))) + before
        # Small records go out together: a system call for each of them would be most of the time.
        together: list[bytes | memoryview] = []
        have = 0
        descriptor = create(path)
        try:
            for sample in range(file.samples):
                pieces = content(spec, f"{file.seed}:{sample}", length)
                crc = crc32c(before)
                for piece in pieces:
                    crc = crc32c(piece, crc)
                together += [head, *pieces, after + _WORD.pack(masked(crc32c(after, crc)))]
                have += total
                if have >= 1 << 22:
                    write_all(descriptor, together)
                    together, have = [], 0
            write_all(descriptor, together)
        finally:
            os.close(descriptor)

    def expected_size(self, file: FileSpec, spec: Spec) -> int:
        before, after = example_around(file.sample_bytes)
        return file.samples * (_AROUND + len(before) + file.sample_bytes + len(after))

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        raise Failure("dataset.format: tfrecord is read in order only: reader.data_loader must be tensorflow")

    def stream(self, path: str, spec: Spec, calls: IO) -> Iterator[tuple[int, int]]:
        """Yield records and the (mean) bytes of each, as soon as they are whole and their checksums right."""
        buffer = bytearray(spec.transfer or TRANSFER)
        view = memoryview(buffer)
        scan, offset, done, payload = TFRecordScan(check=1), 0, 0, 0
        feed = _feeder(buffer)
        descriptor = calls.open(path, way="stream")
        try:
            while True:
                got = calls.pread(descriptor, path, view, offset)
                if not got:
                    break
                offset += got
                problem = feed(scan, got)
                fresh = scan.records - done
                if fresh:
                    each = (scan.payload - payload) // fresh
                    done, payload = scan.records, scan.payload
                    yield fresh, each
                if problem:
                    what = "length" if problem == 1 else "content"
                    raise Failure(
                        f"{path}: sample {scan.records} (at byte {scan.offset}) is damaged: "
                        f"the checksum of its {what} is wrong"
                    )
        finally:
            calls.close(descriptor, path)
        if scan.have or scan.part:
            raise Failure(f"{path}: sample {scan.records} is cut off: the file ends at byte {offset}")

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        with RawFile(calls, path, "ranges") as file:
            head = file.read(_HEAD.size) or b""
        if len(head) < _HEAD.size or masked(crc32c(head[:8])) != _HEAD.unpack(head)[1]:
            raise Failure(f"{path}: not a TFRecord file: the checksum of its first record's length is wrong")
        (length, _) = _HEAD.unpack(head)
        size = calls.size(path)
        samples = size // (length + _AROUND) if size % (length + _AROUND) == 0 else None
        inner = next((n for n in range(max(0, length - 80), length) if _total(n) == length), None)
        return samples, inner


def _total(length: int) -> int:
    before, after = example_around(length)
    return len(before) + length + len(after)


def _feeder(buffer: bytearray):  # type: ignore[no-untyped-def]
    """Return a function (scan, bytes in the buffer) -> 0, 1 or 2, in C where that is there."""
    native = library()
    if native is not None:
        place = address(buffer)
        return lambda scan, got: native.dlkernel_tfrecord_feed(ctypes.byref(scan), place, got)
    return lambda scan, got: _feed(scan, memoryview(buffer)[:got])


def _feed(scan: TFRecordScan, data: memoryview) -> int:
    """Do in Python what native/dlkernel/src/tfrecord.c does."""
    while len(data):
        if scan.part == 1:
            take = min(scan.length - scan.done, len(data))
            scan.crc = crc32c(bytes(data[:take]), scan.crc)
            scan.done += take
            scan.part = 2 if scan.done == scan.length else 1
        else:
            want = 12 if scan.part == 0 else 4
            take = min(want - scan.have, len(data))
            for number in range(take):
                scan.head[scan.have + number] = data[number]
            scan.have += take
            if scan.have == want:
                problem = _header(scan) if scan.part == 0 else _footer(scan)
                if problem:
                    return problem
        data = data[take:]
    return 0


def _header(scan: TFRecordScan) -> int:
    head = bytes(scan.head[:12])
    length, crc = _HEAD.unpack(head)
    if masked(crc32c(head[:8])) != crc:
        return 1
    scan.length, scan.done, scan.crc, scan.have, scan.part = length, 0, 0, 0, 1 if length else 2
    return 0


def _footer(scan: TFRecordScan) -> int:
    if _WORD.unpack(bytes(scan.head[:4]))[0] != masked(scan.crc):
        return 2
    scan.have = scan.part = 0
    scan.records += 1
    scan.payload += scan.length
    scan.offset += scan.length + _AROUND
    return 0
