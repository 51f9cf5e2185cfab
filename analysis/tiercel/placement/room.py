"""Where a program's files live, and how much room each system has for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pandas as pd

from tiercel.errors import UserError
from tiercel.site.model import Site


def home_of(site: Site, systems: list[str], files: pd.DataFrame, notes: list[str]) -> str:
    """Return the system that most of the traced bytes lie on; with none, that with most room, and say so."""
    moved = files["bytes_read"] + files["bytes_written"]
    mounts = mounts_of(site, systems)
    there = dict.fromkeys(mounts, 0.0)
    for file, count in moved.items():
        on = max(
            (s for s, m in mounts.items() if str(file).startswith(m + "/")),
            key=lambda s: len(mounts[s]),
            default=None,
        )
        if on:
            there[on] += float(count)
    if any(there.values()):
        return max(there, key=lambda s: there[s])
    found = max(systems, key=lambda s: _room(site, s) or 0.0)
    notes.append(
        f"no traced file lies on a storage of site {site.site}, so {found} (most room) is taken as their "
        "home: --home"
    )
    return found


def capacities(
    site: Site, systems: list[str], home: str, given: Mapping[str, int], notes: list[str]
) -> dict[str, float]:
    """Return the bytes that may be put on each system (inf: no limit): as given, else what is free there.

    The home has no limit unless one is given: what stays there takes no room that it does not have already.
    """
    limits = {}
    for system in systems:
        room = given.get(system, float("inf") if system == home else _room(site, system))
        if room is None:
            notes.append(
                f"how much room {system} has is not known: no limit is assumed (--capacity {system}=SIZE)"
            )
        limits[system] = float("inf") if room is None else float(room)
    return limits


def mounts_of(site: Site, systems: list[str]) -> dict[str, str]:
    """Return the mount point of each system that is a storage without layers."""
    return {s: site.storages[s].mount.rstrip("/") for s in systems if s in site.storages}


def character_of(site: Site, system: str) -> dict[str, Any]:
    """Return what keeps files on a system and who sees them: medium, volatile, node_local, and words."""
    storage = site.storages.get(system.partition("+")[0])
    if storage is None:
        return {"medium": None, "volatile": False, "node_local": False, "words": []}
    volatile = storage.medium == "memory"
    local = not storage.shared and (site.nodes > 1 or site.scheduler is not None)
    words = [*(["gone after a restart"] if volatile else []), *(["seen by one node"] if local else [])]
    return {"medium": storage.medium, "volatile": volatile, "node_local": local, "words": words}


def _room(site: Site, system: str) -> float | None:
    """Return the bytes that may still be written to a system, None where nothing says."""
    storage = site.storages.get(system.partition("+")[0])
    if storage is None:
        return None
    try:
        existing = next(p for p in (storage.scratch_path(), *storage.scratch_path().parents) if p.exists())
        space = os.statvfs(existing)
    except (OSError, UserError):
        return float(storage.capacity) if storage.capacity else None
    total = space.f_blocks * space.f_frsize
    free = space.f_bavail * space.f_frsize - (1 - storage.fill_limit) * total
    return max(0.0, min(free, float(storage.capacity)) if storage.capacity else free)
