"""What strace saw of a run of dlkernel: opened files and bytes read, by epoch and process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiercel.dl.files.spec import spec_of

from .kernel import result, workload

_CALLS = "openat,open,read,readv,pread64,preadv,preadv2,mmap,clone,clone3,fork,vfork"
_LINE = re.compile(r"^(?P<pid>\d+) +(?P<at>\d+\.\d+) (?P<rest>.*)$")
_PARTS = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<returned>-?\d+|0x[0-9a-f]+)")
_FILE = re.compile(r"<([^<>]*)>")


@dataclass
class Seen:
    """Of one epoch and process: how often each file was opened, its bytes read and the sizes of the reads."""

    opens: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    mapped: Counter[str] = field(default_factory=Counter)


def traced(folder: Path, processes: int, **parts: dict[str, Any]) -> dict[int, dict[int, Seen]]:
    """Run a workload under strace and return {epoch: {process: Seen}} of the files of its dataset."""
    log = folder / "strace.log"
    argv = [
        "strace", "-f", "-ttt", "-y", "-s", "8", "-e", f"trace={_CALLS}", "-o", str(log),
        sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec_of(workload(**parts))),
        "--data", str(folder / "data"), "--output", str(folder / "out"), "--processes", str(processes),
        "--cold", "every",
    ]  # fmt: skip
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr
    epochs = [(r["epoch"], r["began"], r["began"] + r["seconds"]) for r in result(folder)["rows"]
              if r["kind"] == "train"]  # fmt: skip
    return _of_log(log.read_text(), str((folder / "data" / "train").resolve()), processes, epochs)


def _of_log(
    text: str, where: str, processes: int, epochs: list[tuple[int, float, float]]
) -> dict[int, dict[int, Seen]]:
    found: dict[int, dict[int, Seen]] = {number: defaultdict(Seen) for number, _, _ in epochs}
    parent: dict[str, str] = {}
    forked: list[str] = []  # by the first process: the others of the run come first, then its readers
    main = ""
    calls: list[tuple[str, float, str]] = []
    for pid, at, call in _whole_calls(text):
        main = main or pid
        parts = _PARTS.match(call)
        if parts and parts["name"] in ("clone", "clone3", "fork", "vfork") and int(parts["returned"], 0) > 0:
            parent[parts["returned"]] = pid
            if pid == main and parts["name"] != "vfork" and "CLONE_THREAD" not in call:
                forked.append(parts["returned"])
        else:
            calls.append((pid, at, call))
    for pid, at, call in calls:
        parts = _PARTS.match(call)
        number = next((n for n, began, ended in epochs if began <= at <= ended), None)
        if parts and number is not None and where in call:
            _note(found[number][_rank(pid, parent, forked[: processes - 1])], parts, call, where)
    return {number: dict(sorted(seen.items())) for number, seen in found.items()}


def _rank(pid: str, parent: dict[str, str], others: list[str]) -> int:
    """Return the process of the run that began a thread or reader: 0 where none of the others did."""
    while pid not in others and pid in parent:
        pid = parent[pid]
    return others.index(pid) + 1 if pid in others else 0


def _whole_calls(text: str) -> list[tuple[str, float, str]]:
    """Return (pid, when it began, call), with calls joined that strace had to interrupt."""
    found, begun = [], {}
    for line in text.splitlines():
        parts = _LINE.match(line)
        if not parts:
            continue
        pid, rest = parts["pid"], parts["rest"]
        if rest.endswith("<unfinished ...>"):
            begun[pid] = (float(parts["at"]), rest.removesuffix("<unfinished ...>").rstrip())
        elif rest.startswith("<... "):
            at, first = begun.pop(pid)
            found.append((pid, at, first + rest.split("resumed>", 1)[1]))
        else:
            found.append((pid, float(parts["at"]), rest))
    return found


def _note(seen: Seen, parts: re.Match[str], call: str, where: str) -> None:
    name, returned = parts["name"], int(parts["returned"], 0)
    files = [path for path in _FILE.findall(call) if path.startswith(where)]
    if not files or returned < 0:
        return
    if name in ("openat", "open"):
        seen.opens[files[-1]] += 1
    elif name == "mmap":
        seen.mapped[files[0]] += 1
    else:
        seen.bytes[files[0]] += returned
        seen.sizes.append(returned)


def sizes_of_reads(text: str, path: str) -> list[int]:
    """Return the bytes of each read of `path` in a log of one process, without the empty ones at its end."""
    parts = [_PARTS.match(line.split(None, 1)[1]) for line in text.splitlines() if f"<{path}>" in line]
    return [size for p in parts if p and (size := int(p["returned"], 0)) > 0]
