"""JPEG and PNG files of one grey image, written and decoded by Pillow.

A JPEG is made exactly as large as the workload says: the quality is searched at which the image nearly fills
that, and a comment segment, which decoders skip, fills the rest. A PNG of noise is as large as its pixels,
plus some per mille.
"""

from __future__ import annotations

import io
import os
import struct

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import Format, Opened, Whole, create, register, write_all
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.spec import Spec

_COMMENT = 65533  # the most in one segment
#: Qualities that fitted, by dimensions and bytes: the next image is much the same.
_qualities: dict[tuple[tuple[int, int], int], int] = {}


@register("jpeg", "png")
class ImageFile(Format):
    library = "PIL"

    def prepare(self) -> None:
        from PIL import Image  # noqa: PLC0415

        Image.preinit()

    def packs(self, spec: Spec) -> bool:
        return True

    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        data = _png(file, spec) if spec.format == "png" else _jpeg(file, spec)
        descriptor = create(path)
        try:
            write_all(descriptor, [data])
        finally:
            os.close(descriptor)

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

        with io.BufferedReader(RawFile(calls, path), 4096) as file:
            try:
                with Image.open(file) as image:
                    image.load()
                    size = image.width * image.height * len(image.getbands())
            except UnidentifiedImageError:
                raise Failure(f"{path}: sample 0 is no image") from None
            except (OSError, SyntaxError, ValueError, struct.error) as error:
                raise Failure(f"{path}: sample 0 is damaged: {error}") from None
        return Whole(path, 1, size)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

        try:
            with io.BufferedReader(RawFile(calls, path)) as file, Image.open(file) as image:
                return 1, image.width * image.height * len(image.getbands())
        except UnidentifiedImageError:
            raise Failure(f"{path}: no image") from None


def _pixels(file: FileSpec, spec: Spec) -> tuple[tuple[int, int], bytes]:
    height, width = (*file.shape, 1)[:2]
    return (width, height), b"".join(content(spec, file.seed, width * height))


def _png(file: FileSpec, spec: Spec) -> bytes:
    from PIL import Image  # noqa: PLC0415

    out = io.BytesIO()
    size, pixels = _pixels(file, spec)
    Image.frombytes("L", size, pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _jpeg(file: FileSpec, spec: Spec) -> bytes:
    from PIL import Image  # noqa: PLC0415

    size, pixels = _pixels(file, spec)
    image = Image.frombytes("L", size, pixels)
    target = file.sample_bytes if spec.stdev else spec.record_length
    known = _qualities.get((size, target))
    low, high = (max(1, known - 1), known + 1) if known else (1, 100)
    best = b""
    while low < high:
        quality = known or (low + high + 1) // 2
        known = None
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        if out.tell() <= target:
            low, best = quality, out.getvalue()
            _qualities[size, target] = quality
            if target - len(best) < target // 20:
                break
        else:
            high = quality - 1
    if not best:  # noise that fits at no quality
        out = io.BytesIO()
        image.save(out, "JPEG", quality=1)
        best = out.getvalue()
    return _filled(best, target)


def _filled(data: bytes, target: int) -> bytes:
    """Return a JPEG made `target` bytes long by comments after its first marker (4 bytes at least each)."""
    comments, left = bytearray(), target - len(data)
    while left >= 4:
        length = min(left - 4, _COMMENT)
        if 0 < left - 4 - length < 4:  # what stays must hold a segment
            length -= 4
        comments += b"\xff\xfe" + struct.pack(">H", length + 2) + bytes(length)
        left -= 4 + length
    return data[:2] + bytes(comments) + data[2:]
