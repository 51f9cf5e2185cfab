"""The storage that a stack stands on, and the room that was left on it when the study ran."""

from __future__ import annotations

from tiercel.report.data import Results
from tiercel.site.model import Site, Storage


def storage_of(site: Site, stack: str) -> Storage | None:
    """Return what the site file says of it; None of a storage that is no longer in it."""
    return site.storages.get(stack.partition("+")[0])


def free_bytes(results: Results, stack: str) -> float | None:
    """Return the least that was free on a stack's storage while measuring, None where nobody looked."""
    return results.free_bytes.get(stack.partition("+")[0])
