"""Drishti (drishti-io 0.8) on the Darshan logs of a set, scored by the same labels.

Drishti writes the codes of what it says to a CSV file. Its level is fixed for each code: only those of level
HIGH and WARN are in the table here (INFO and OK say what a program does, not what is wrong). Codes for which
the set has no label are left out: P07 (buffers in memory not aligned), P10 (the same bytes written twice),
M06 and M07 (no non-blocking MPI-IO), M09 (aggregators between nodes).
"""

from __future__ import annotations

import csv
import shlex
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.findings.labels import Trace

#: The labels that a code can mean. Where it can mean several, it counts as those that the trace has, and as
#: the first where the trace has none: what Drishti does not tell apart is not held against it.
CODES = {
    "S01": ("stdio",),
    "P05": ("small-transfers",),  # reads
    "P06": ("small-transfers",),  # writes
    "P15": ("small-transfers",),  # reads of shared files
    "P16": ("small-transfers",),  # writes of shared files
    "P08": ("misaligned",),
    "P09": ("read-again",),
    "P11": ("random-access",),  # reads
    "P13": ("random-access",),  # writes
    "P17": ("metadata-bound", "open-storm"),
    "P18": ("imbalance", "single-writer"),  # bytes, shared files
    "P19": ("imbalance", "slow-part", "single-writer"),  # time, shared files
    "P21": ("imbalance", "single-writer"),  # bytes written
    "P22": ("imbalance",),  # bytes read
    "M01": ("no-mpiio",),
    "M02": ("independent-io",),  # reads
    "M03": ("independent-io",),  # writes
}
LABELS = frozenset(label for labels in CODES.values() for label in labels)
_LIMIT = 300  # seconds for one log


def ask_drishti(command: str, traces: Iterable[Trace], folder: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Return what Drishti says of each Darshan log, in our labels, and which logs it could not read."""
    said, unread = {}, []
    for trace in traces:
        with tempfile.TemporaryDirectory(prefix="tiercel-drishti-") as output:
            log = (folder / trace.file).resolve()  # it is started in another folder
            words = [*shlex.split(command), "--csv", "--export_dir", output, str(log)]
            try:
                done = subprocess.run(
                    words, cwd=output, capture_output=True, text=True, timeout=_LIMIT, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                unread.append(f"{trace.name}: {error}")
                continue
            found = list(Path(output).glob("*.csv"))
            if done.returncode or not found:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                unread.append(f"{trace.name}: {last[0] if last else 'no CSV file was written'}")
                continue
            said[trace.name] = labels_of(codes(found[0]), trace)
    return said, unread


def codes(path: Path) -> set[str]:
    """Return the codes that Drishti's CSV file says are true."""
    with path.open(newline="", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    return {code for code, value in row.items() if value == "True"}


def labels_of(said: Iterable[str], trace: Trace) -> set[str]:
    """Return the labels that Drishti's codes mean for this trace."""
    labels: set[str] = set()
    for code in said:
        meant = CODES.get(code, ())
        true = trace.labels.intersection(meant)
        labels.update(true or [m for m in meant if m in trace.allowed] or meant[:1])
    return labels
