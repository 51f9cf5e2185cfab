"""What can be read of a compressed file that is not whole: a tracer that was killed leaves such."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

_READ, _BLOCK = 1 << 20, 4 << 20
_GZIP = 31
#: Of a member: checksum and size, without which it is torn.
TRAILER = 8


def inflated(path: Path) -> Iterator[bytes]:
    """Yield what is in a .gz file as far as it can be read; nothing for what is none."""
    member, most = zlib.decompressobj(_GZIP), _BLOCK
    with path.open("rb") as file:
        while data := file.read(_READ):
            while data:
                before = member.copy()
                try:
                    found = member.decompress(data, most)
                except zlib.error:  # somewhere in this block: nearer to it in smaller ones
                    member, most = before, most // 16
                    if not most:  # to zlib, 0 is no limit
                        return
                    continue
                if found:
                    yield found
                data = member.unconsumed_tail
                if member.eof:
                    data, member = member.unused_data, zlib.decompressobj(_GZIP)
