"""The file systems of an evaluation, recorded when it begins and read by each of its jobs.

What a study has measured stays valid while its storages are the same: each finished run holds in its context
which file system it measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.results.raw import RawStore
from tiercel.runs.scratch import check_scratch
from tiercel.site.filesystem import FileSystem
from tiercel.study.plan import RunPlan

FILE = "filesystems.json"


def record_file_systems(plan: RunPlan, results: Path) -> None:
    """Write which file systems the plan's storages are, as this node sees them, to ``filesystems.json``.

    A storage that is not mounted here is left out: the nodes of its jobs check it. UserError where finished
    runs of the plan measured another file system under a storage's name.
    """
    if plan.site.simulated:
        return
    found: dict[str, FileSystem] = {}
    for stack in {c.stack.name: c.stack for c in plan.configurations}.values():
        if not stack.storage.objects:
            with suppress(UserError):
                found[stack.name] = check_scratch(stack)
    _check_finished(plan, RawStore(results), found)
    rows = {name: file_system.row() for name, file_system in found.items()}
    try:
        results.mkdir(parents=True, exist_ok=True)
        write_text(results / FILE, json.dumps(rows, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise UserError(f"{results / FILE}: cannot be written: {error.strerror}") from None


def _check_finished(plan: RunPlan, store: RawStore, found: Mapping[str, FileSystem]) -> None:
    # As results hold them: without what is private.
    now = {name: FileSystem(**private().plain(file_system.row())) for name, file_system in found.items()}
    done = set(store.ids())
    others: dict[str, list[tuple[str, str]]] = {}
    for run in plan.runs:
        name = run.configuration.stack.name
        # Only the conditions: reading all of thousands of runs takes longer than beginning.
        row = store.context(run.id).get("file_system") if name in now and run.id in done else None
        if row is None:
            continue
        try:
            differs = now[name].differs_from(FileSystem(**row))
        except TypeError:
            path = store.path(run.id) / "context.json"
            raise UserError(
                f"{path}: file_system is no file system: move the folder away to run it again"
            ) from None
        if differs and (raw := store.read(run.id)) and raw.ok:
            others.setdefault(name, []).append((run.id, differs))
    if others:
        name, runs = next(iter(others.items()))
        first, differs = runs[0]
        raise UserError(
            f"storage {name}: {len(runs)} finished runs of study {plan.study.study} measured another "
            f"file system: {differs}: mount that one again, or move {store.folder.parent} away "
            f"to measure again (one of them: {first})"
        )


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
