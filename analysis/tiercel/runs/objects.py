"""The prefix of one run in object storage: made by us, marked as ours, removed by us.

As on file systems (`scratch`): what does not lie below the scratch prefix in a run's own prefix, with our
marker in it, is neither written nor removed. A bucket is never made, and never emptied.
"""

from __future__ import annotations

import os
import platform

from tiercel.errors import RunFailed, UserError
from tiercel.runs.scratch import MARKER, RUN_PREFIX, check_scratch
from tiercel.s3.client import Client
from tiercel.s3.endpoint import Location
from tiercel.s3.errors import S3Error
from tiercel.site.model import Stack
from tiercel.site.objects import location_of

_PROBE = b"tiercel writes this, reads it back and removes it\n"


class ObjectScratch:
    """A run's own prefix, as a context manager; `data` is the empty place for the engine."""

    def __init__(self, stack: Stack, run_id: str) -> None:
        self._place = location_of(stack.storage) / f"{RUN_PREFIX}{run_id}"
        self.data = self._place / "data"

    def __enter__(self) -> ObjectScratch:
        try:
            remove_run_prefix(self._place)  # an attempt that was killed left it
            client = Client(self._place.endpoint, self._place.bucket)
            client.put((self._place / MARKER).prefix, [b""])
            client.close()
        except S3Error as error:
            raise RunFailed(f"{self._place}: {error.strerror}") from None
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            remove_run_prefix(self._place)
        except S3Error as error:
            raise UserError(f"{self._place}: cannot be removed: {error.strerror}") from None


def remove_run_prefix(place: Location) -> int:
    """Remove a run's objects and return how many; UserError for some without our marker.

    The marker goes last, so that what is interrupted stays ours.
    """
    if not place.prefix.rpartition("/")[2].startswith(RUN_PREFIX):
        raise UserError(f"{place}: is not the prefix of a run and is not removed")
    client = Client(place.endpoint, place.bucket)
    marker = (place / MARKER).prefix
    keys = [found.key for found in client.list(f"{place.prefix}/")]
    if keys and marker not in keys:
        raise UserError(f"{place}: has no {MARKER} marker and is not removed: remove it yourself")
    data = (place / "data").prefix + "/"
    for key in keys:
        if key.startswith(data):
            client.delete(key)
    client.abandon(data)
    if keys:
        client.delete(marker)
    client.close()
    return len(keys)


def left_prefixes(stack: Stack) -> list[Location]:
    """Return the prefixes of runs that were killed; UserError where the server does not answer."""
    place = location_of(stack.storage)
    client = Client(place.endpoint, place.bucket)
    begin = (place / RUN_PREFIX).prefix
    try:
        keys = [found.key for found in client.list(begin)]
    except S3Error as error:
        raise UserError(f"storage {stack.name}: {error.strerror}") from None
    depth = begin.count("/") + 1
    return [Location(place.endpoint, place.bucket, key)
            for key in sorted({"/".join(key.split("/")[:depth]) for key in keys})]  # fmt: skip


def check_storage(stack: Stack) -> None:
    """Raise UserError unless a run can write on the storage of a stack, of files or of objects."""
    if stack.storage.objects:
        check_objects(stack)
    else:
        check_scratch(stack)


def check_objects(stack: Stack) -> None:
    """Write an object in the scratch prefix, read it back, list it, remove it; UserError for what fails."""
    try:
        # A name of its own: the nodes of a job all look at once.
        place = location_of(stack.storage) / f"tiercel-probe-{platform.node()}-{os.getpid()}"
        key = place.prefix
        client = Client(place.endpoint, place.bucket)
        client.put(key, [_PROBE])
        try:
            if client.read(key) != _PROBE:
                raise UserError(f"storage {stack.name}: {place}: returns other bytes than were written")
            if [found.size for found in client.list(key)] != [len(_PROBE)]:
                raise UserError(f"storage {stack.name}: {place}: does not list what was written")
        finally:
            client.delete(key)
        client.close()
    except UserError as error:
        said = str(error)
        raise UserError(said if stack.name in said else f"storage {stack.name}: {said}") from None
    except S3Error as error:
        raise UserError(f"storage {stack.name}: {stack.storage.endpoint}: {error.strerror}") from None
