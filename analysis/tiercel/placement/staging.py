"""A plan's files: placement.csv, plan.json, a script that stages, and a map for a burst-buffer tool.

Names of files are hostile input here: they may hold spaces, quotes and newlines. The script quotes every one
for the shell; the map escapes as JSON does.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from tiercel.errors import UserError, one_line
from tiercel.placement.plan import PlacementPlan

#: Bytes of files that the trace does not know, and files, up to which a folder moves whole.
LITTLE_ELSE = 64 << 20
MANY = 100_000


@dataclass(frozen=True)
class Move:
    """A file or folder that lies at `place` while the program runs, with a link at `home` where it belongs.

    Both paths are absolute. `brings_in`: the program needs what was there before; `brings_out`: it leaves
    something there that is kept. What exists is copied in all the same, but for a folder with neither (of
    temporary files), which starts empty and ends as it was.
    """

    home: str
    place: str
    folder: bool
    brings_in: bool
    brings_out: bool


def staged_command(script: Path, program: Sequence[str]) -> list[str]:
    """Return the command that runs a program with the staging script.

    It names tiercel's own interpreter, without its packages (-S): a `python3` that is a wrapper of pyenv or
    conda takes twice as long to start.
    """
    return [os.path.realpath(sys.executable), "-S", str(script), "run", "--", *program]


def staging_script(moves: Sequence[Move], mounts: Iterable[str] = ()) -> str:
    """Return the Python script that carries out `moves` (`placement/stage.py`, with them in it).

    What lies in a moved folder needs no move of its own. `mounts`: mount points without which it refuses,
    since it
    would fill or clear what lies below them. UserError for a move that could not be undone: one in a folder
    that goes
    elsewhere, to below its own home, or to where another goes.
    """
    listed = [[m.home, m.place, m.folder, m.brings_in, m.brings_out] for m in _ordered(moves)]
    # A mount point that is absent here (a node's own storage, seen from a login node) cannot be expected
    # there.
    points = sorted(point for point in set(mounts) - {"/"} if os.path.ismount(point))
    text = files("tiercel.placement").joinpath("stage.py").read_text(encoding="utf-8")
    for name, value in (("MOVES", listed), ("MOUNTS", points)):
        text = re.sub(rf"(?m)^({name}: .*) = \[\]$", lambda m, v=value: f"{m[1]} = {v!a}", text)  # type: ignore[misc]
    return text


def _ordered(moves: Sequence[Move]) -> list[Move]:
    """Return the moves that are carried out, those of folders first."""
    found: dict[str, Move] = {}
    for given in moves:
        move = replace(given, home=_plain(given.home), place=_plain(given.place))
        same = found.setdefault(move.home, move)
        if (same.place, same.folder) != (move.place, move.folder):
            raise UserError(f"{one_line(move.home)}: is to go to {same.place} and to {move.place}")
        found[move.home] = replace(
            same,
            brings_in=same.brings_in or move.brings_in,
            brings_out=same.brings_out or move.brings_out,
        )
    kept = []
    places: dict[str, str] = {}
    for move in sorted(found.values(), key=lambda m: (not m.folder, m.home)):
        outer = next((found[p] for p in _parents(move.home) if p in found and found[p].folder), None)
        if outer is None:
            kept.append(move)
            if (other := places.setdefault(move.place, move.home)) != move.home:
                raise UserError(f"{one_line(move.home)} and {one_line(other)} are both to go to {move.place}")
        elif move.place != outer.place + move.home.removeprefix(outer.home):
            raise UserError(
                f"{one_line(move.home)} cannot go to {move.place}: its folder {outer.home} goes to "
                f"{outer.place}"
            )
        else:
            found[outer.home] = replace(
                outer,
                brings_in=outer.brings_in or move.brings_in,
                brings_out=outer.brings_out or move.brings_out,
            )
    for place in places:
        if around := [p for p in _parents(place) if p in places]:
            raise UserError(f"{one_line(place)}: lies in {around[0]}, where another goes")
    homes = {m.home for m in kept}
    for move in kept:
        if any(p in homes for p in (move.place, *_parents(move.place))):
            raise UserError(f"{one_line(move.place)}: lies below a file or folder that is to be moved")
        if any(p in places for p in (move.home, *_parents(move.home))):
            raise UserError(f"{one_line(move.home)}: lies where a file or folder is to be moved to")
    return [found[m.home] for m in kept]


def _plain(path: str) -> str:
    """Return an absolute path without empty parts. UserError for one that names no file of its own."""
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if not path.startswith("/") or not parts or ".." in parts or "\0" in path:
        raise UserError(f"{one_line(path)}: not an absolute path of a file or folder that could be moved")
    return "/" + "/".join(parts)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts) - 1, 1, -1)]


def targets(plan: PlacementPlan) -> pd.DataFrame:
    """Return the files that move (index: file): their system, and `place`, their path there.

    What goes to the home's own storage, with a layer in front, stays where it is.
    """
    base = plan.files["system"].astype(str).str.partition("+")[0]
    moved = plan.files[base != plan.home.partition("+")[0]].copy()
    moved["place"] = [_place(plan, str(s), str(f)) for f, s in moved["system"].items()]
    return moved


def _place(plan: PlacementPlan, system: str, path: str) -> str:
    storage = plan.site.storages.get(system.partition("+")[0])
    if storage is None:
        raise UserError(
            f"site {plan.site.site} has no storage {system!r} any more: run the sweep and train again"
        )
    return str(storage.scratch_path() / "placed" / path.lstrip("/"))


def moves_of(plan: PlacementPlan) -> list[Move]:
    """Return what staging moves: whole folders in which the program makes files, and single files.

    A link for each file is not enough where a program makes files once only, renames them or removes them:
    its new files would lie at home. Such a folder moves whole when all of its traced files go to one system,
    and when it holds little else. Files with relative names are left out: nobody knows relative to what.
    """
    moved = targets(plan)
    moved = moved[moved.index.astype(str).str.startswith("/")]
    folders = _whole_folders(plan, moved)
    flags: dict[str, list[bool]] = {folder: [False, False] for folder in folders}
    moves = []
    for name, row in moved.iterrows():
        file, brings = str(name), (bool(row["input"]), bool(row["output"]))
        inside = next((p for p in _parents(file) if p in folders), None)
        if inside is None:
            moves.append(Move(file, row["place"], False, *brings))
        else:
            flags[inside] = [a or b for a, b in zip(flags[inside], brings, strict=True)]
    # What is removed in the end may be there when the program fails: a folder always comes back.
    return [
        *(Move(f, _place(plan, folders[f], f), True, brings[0], True) for f, brings in flags.items()),
        *moves,
    ]


def _whole_folders(plan: PlacementPlan, moved: pd.DataFrame) -> dict[str, str]:
    """Return the folders that move whole, with their system; none lies in another."""
    everything = plan.files["system"].astype(str)
    made = set(plan.made_folders)
    found: dict[str, str] = {}
    refused: set[str] = set()
    for name in moved.index[moved["made"].astype(bool)]:
        candidates = [str(name).rpartition("/")[0]]
        # A folder that the program makes itself should not be there before it: rather the one above.
        while candidates[0] in made:
            candidates.insert(0, candidates[0].rpartition("/")[0])
        for folder in candidates:
            if folder in found:
                break
            if folder not in refused:
                inside = everything[everything.index.astype(str).str.startswith(folder + "/")]
                if inside.nunique() == 1 and _holds_little_else(plan, folder, inside.index):
                    found[folder] = inside.iloc[0]
                    break
                refused.add(folder)
    return {f: s for f, s in found.items() if not any(p in found for p in _parents(f))}


def _holds_little_else(plan: PlacementPlan, folder: str, known: pd.Index) -> bool:
    """Return whether a folder may move whole: no mount point, and few bytes that the trace does not know."""
    if os.path.ismount(folder) or folder.count("/") < 2 or Path(folder) == Path.home():
        return False
    mounts = [s.mount for s in plan.site.storages.values()]
    if any(m == folder or m.startswith(folder + "/") for m in mounts):
        return False
    names, others = set(known), 0
    limit = max(LITTLE_ELSE, float(plan.files.loc[known, "bytes"].sum()))
    seen = 0
    for at, _, inside in os.walk(folder):
        for name in inside:
            seen += 1
            path = f"{at}/{name}"
            if path not in names:
                try:
                    others += os.lstat(path).st_blocks * 512
                except OSError:
                    return False
            if others > limit or seen > MANY:
                return False
    return True


def script(plan: PlacementPlan) -> str:
    """Return the staging script. Files with relative names are left out: nobody knows relative to what."""
    moved = targets(plan)
    unknown = moved.index[~moved.index.astype(str).str.startswith("/")]
    left = [f"# left out, its folder is not known: {one_line(str(f))}" for f in unknown]
    systems = {plan.home, *moved["system"].astype(str)}
    used = [plan.site.storages[s] for s in {s.partition("+")[0] for s in systems} & set(plan.site.storages)]
    text = staging_script(moves_of(plan), (str(storage.mount_path()) for storage in used))
    return "\n".join([text.rstrip("\n"), *left, ""])


def burst_buffer_map(plan: PlacementPlan) -> list[dict[str, Any]]:
    """Return one entry for each file that moves: where from, where to, whether in and out."""
    return [
        {"file": str(file), "place": row["place"], "system": row["system"], "bytes": int(row["bytes"]),
         "stage_in": bool(row["input"]), "stage_out": bool(row["output"])}
        for file, row in targets(plan).iterrows()
    ]  # fmt: skip


def group_rows(plan: PlacementPlan) -> list[dict[str, Any]]:
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
            "traced_seconds": None if pd.isna(row["traced"]) else float(row["traced"]),
            "rests_on": row["rests_on"], "held": row["held"],
            "staging_seconds": float(row[f"staging:{row['system']}"]), "outside": row["outside"],
            "reason": row["reason"],
        }
        for group, row in table.iterrows()
    ]  # fmt: skip


def write_plan(plan: PlacementPlan, folder: Path) -> list[Path]:
    """Write the four files into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "plan.json": json.dumps(
            {**plan.summary, "notes": list(plan.notes), "rows": group_rows(plan)}, indent=1
        )
        + "\n",
        "stage.py": script(plan),
        "burst-buffer.map": "".join(json.dumps(entry) + "\n" for entry in burst_buffer_map(plan)),
    }
    try:
        plan.files.to_csv(folder / "placement.csv")
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    return [folder / name for name in ("placement.csv", *contents)]
