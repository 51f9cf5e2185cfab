"""CRC-32C (Castagnoli) and TFRecord's mask of it."""

from __future__ import annotations

from functools import cache

from tiercel.dl.kernel.native import address, library


def masked(crc: int) -> int:
    """Return TFRecord's mask of a CRC: rotated right by 15 bits, plus a constant."""
    return (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
    """Return the CRC of `data`, continued from `crc`."""
    native = library()
    if native is not None:
        if isinstance(data, bytes):
            return int(native.dlkernel_crc32c(crc, data, len(data)))
        if len(data) == 0:
            return crc
        return int(native.dlkernel_crc32c(crc, address(data), len(data)))
    table, crc = _table(), crc ^ 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)
