"""Whole objects ahead of the steps, as MLPerf Storage 3's DLIO reads them by its clients of S3.

Each of `read_threads` readers has objects of its own, of which `object_window` are on their way to it,
whatever the steps have asked for: s3dlio keeps 64, minio's client 16, s3torchconnector one. Nobody looks at
what comes, there and here; it is counted and thrown away, so that no object is ever in memory.
Source: mlcommons/DLIO_local_changes, July 2026, _s3_iterable_mixin.py and torch_data_loader.py.
"""

from __future__ import annotations

from contextlib import suppress

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.formats.parquet import Group
from tiercel.dl.kernel.loaders.base import Work
from tiercel.dl.kernel.loaders.groups import Groups

#: Bytes that a thread takes of an answer at once.
_PIECE = 1 << 20


class WholeObjects(Groups):
    """An object is one group: all of its samples, by one request."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._at_once = self._window = work.spec.object_window

    def _plan(self, file: int) -> list[Group]:
        return [Group(self.work.split.per_file, 0, 0)]

    def _fetch(self, file: int, group: Group) -> int:
        calls, path, size = self.work.calls, self.work.split.paths[file], 0
        if file in self._remembered:
            return 0
        try:
            descriptor = calls.open(path, way="stream")
            try:
                while got := calls.read(descriptor, path, self._buffer(_PIECE)):
                    size += got
            finally:
                with suppress(OSError):
                    calls.close(descriptor, path)
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        if not size:
            raise Failure(f"{path}: is empty")
        return size
