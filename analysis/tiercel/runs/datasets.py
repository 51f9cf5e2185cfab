"""A dataset that lies on a storage already, for runs that make none of their own (key `data_folder`).

Nothing of it is written or removed. The engine compares it with the workload before it trains.
"""

from __future__ import annotations

from pathlib import Path

from tiercel.s3.endpoint import Location
from tiercel.site.model import Stack
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.site.objects import location_of
from tiercel.study.workloads import Workload


def dataset_of(workload: Workload, stack: Stack) -> Path | Location | None:
    """Return where the dataset of a workload lies on a stack's storage; None where each run makes its own.

    UserError for a storage whose variables are not set.
    """
    folder = workload.existing_data()
    if folder is None:
        return None
    if stack.storage.objects:
        return location_of(stack.storage) / folder
    return stack.storage.scratch_path() / folder


def dataset_problem(workload: Workload, stack: Stack) -> str | None:
    """Return why no dataset can be on the storage under test where the workload says, or None.

    A folder of another file system would be measured under this one's name. What objects there are, the
    engine sees.
    """
    place = dataset_of(workload, stack)
    if isinstance(place, Location) or place is None:
        named = workload.existing_data()
        if place is not None and str(named).startswith("/"):
            return f"data_folder: {named}: on object storage it lies below the scratch prefix: no leading /"
        return None
    if not place.is_dir():
        return f"data_folder: {place}: no such folder: make it (tiercel dl generate ... --folder {place})"
    mount, wanted = mount_of(place.resolve(), read_mounts()), stack.storage.mount_path()
    if mount is None or mount.point != wanted:
        found = mount.point if mount else "nothing"
        return f"data_folder: {place}: lies on {found}, not on {wanted}, the mount of storage {stack.name}"
    return None
