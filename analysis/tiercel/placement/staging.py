"""A plan's files: placement.csv, plan.json, a script that stages, and a map for a burst-buffer tool.

Names of files are hostile input here: they may hold spaces, quotes and newlines. The script quotes every one
for the shell; the map escapes as JSON does.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tiercel.errors import UserError, one_line

if TYPE_CHECKING:
    from tiercel.placement.plan import Plan

_HEAD = """\
#!/bin/sh
# Puts files where the plan wants them.
#   sh stage.sh in     before the program: copies inputs to their system and leaves links in their place
#   sh stage.sh out    after the program: brings results back and removes the links
# Nothing is removed before its copy is complete; run either again after an interruption.
set -eu
umask 077

stage_in() {  # home, place, input?
    mkdir -p -- "$(dirname -- "$2")" "$(dirname -- "$1")"
    if [ -L "$1" ]; then return 0; fi
    if [ -e "$1" ]; then
        cp -p -- "$1" "$2.part"
        mv -- "$2.part" "$2"
        mv -- "$1" "$1.tiercel-home"
    fi
    ln -s -- "$2" "$1"
}

stage_out() {  # home, place
    if [ ! -L "$1" ]; then
        # "in" was cut off before the link, or the program replaced the link by a file of its own.
        if [ ! -e "$1" ] && [ -e "$1.tiercel-home" ]; then mv -- "$1.tiercel-home" "$1"; fi
        rm -f -- "$1.tiercel-home" "$2" "$2.part"
        return 0
    fi
    if [ ! -e "$2" ]; then  # the program made no such file, or removed it
        rm -f -- "$1"
        if [ -e "$1.tiercel-home" ]; then mv -- "$1.tiercel-home" "$1"; fi
        return 0
    fi
    cp -p -- "$2" "$1.part"
    mv -f -- "$1.part" "$1"
    rm -f -- "$1.tiercel-home" "$2"
}

case "${1:-}" in
in) stage=stage_in ;;
out) stage=stage_out ;;
*) echo "usage: sh stage.sh in|out" >&2; exit 2 ;;
esac
"""


def targets(plan: Plan) -> pd.DataFrame:
    """Return the files that move (index: file): their system, and `place`, their path there."""
    moved = plan.files[plan.files["system"] != plan.home].copy()
    places = []
    for file, system in moved["system"].items():
        storage = plan.site.storages.get(str(system).partition("+")[0])
        if storage is None:
            raise UserError(
                f"site {plan.site.site} has no storage {system!r} any more: run the sweep and train again"
            )
        places.append(str(storage.scratch_path() / "placed" / str(file).lstrip("/")))
    moved["place"] = places
    return moved


def script(plan: Plan) -> str:
    """Return the staging script. Files with relative names are left out: nobody knows relative to what."""
    moved = targets(plan)
    lines = [_HEAD]
    for file, row in moved.iterrows():
        if str(file).startswith("/"):
            lines.append(f"$stage {shlex.quote(str(file))} {shlex.quote(row['place'])}")
        else:
            lines.append(f"# left out, its folder is not known: {one_line(str(file))}")
    return "\n".join([*lines, ""])


def burst_buffer_map(plan: Plan) -> list[dict[str, Any]]:
    """Return one entry for each file that moves: where from, where to, whether in and out."""
    return [
        {"file": str(file), "place": row["place"], "system": row["system"], "bytes": int(row["bytes"]),
         "stage_in": bool(row["input"]), "stage_out": bool(row["output"])}
        for file, row in targets(plan).iterrows()
    ]  # fmt: skip


def group_rows(plan: Plan) -> list[dict[str, Any]]:
    """Return one plain row for each file group, the largest expected saving first."""
    table = plan.groups.sort_values("saved_seconds", ascending=False)
    systems = plan.summary["systems"]
    return [
        {
            "group": str(group), "files": int(row["files"]), "bytes": int(row["size"]),
            "bytes_read": int(row["bytes_read"]), "bytes_written": int(row["bytes_written"]),
            "system": row["system"], "expected_gain": float(row["gain"]),
            "saved_seconds": float(row["saved_seconds"]),
            "gain_interval_90": [float(row["gain_low"]), float(row["gain_high"])],
            "confidence": float(row["confidence"]), "decided": bool(row["decided"]),
            "bundle": int(row["bundle"]),
            "expected_seconds": {s: float(row[f"seconds:{s}"]) for s in systems},
            "staging_seconds": float(row[f"staging:{row['system']}"]), "outside": row["outside"],
            "reason": row["reason"],
        }
        for group, row in table.iterrows()
    ]  # fmt: skip


def write_plan(plan: Plan, folder: Path) -> list[Path]:
    """Write the four files into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "plan.json": json.dumps(
            {**plan.summary, "notes": list(plan.notes), "rows": group_rows(plan)}, indent=1
        )
        + "\n",
        "stage.sh": script(plan),
        "burst-buffer.map": "".join(json.dumps(entry) + "\n" for entry in burst_buffer_map(plan)),
    }
    try:
        plan.files.to_csv(folder / "placement.csv")
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    return [folder / name for name in ("placement.csv", *contents)]
