"""The file systems of an evaluation, recorded when it begins and read by each of its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.runs.scratch import check_scratch
from tiercel.site.filesystem import FileSystem
from tiercel.site.simulated import is_simulated
from tiercel.study.plan import Plan

FILE = "filesystems.json"


def record_file_systems(plan: Plan, results: Path) -> None:
    """Write which file systems the plan's storages are, as this node sees them, to ``filesystems.json``.

    A storage that is not mounted here is left out: the nodes of its jobs check it.
    """
    if is_simulated(plan.site.site):
        return
    found = {}
    for stack in {c.stack.name: c.stack for c in plan.configurations}.values():
        if not stack.storage.objects:
            with suppress(UserError):
                found[stack.name] = check_scratch(stack).row()
    try:
        results.mkdir(parents=True, exist_ok=True)
        write_text(results / FILE, json.dumps(found, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise UserError(f"{results / FILE}: cannot be written: {error.strerror}") from None


def recorded_file_systems(results: Path) -> Mapping[str, FileSystem]:
    """Return what was recorded, by name of the storage; UserError for a damaged file."""
    path = results / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {name: FileSystem(**row) for name, row in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: cannot be read ({error}): remove it") from None
